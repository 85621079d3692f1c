"""A planted corpus, its manifest and real SFTTrainers over the small checkpoint."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.audit.canary import Template, parse_template
from atdp_cli.audit.manifest import Manifest, make_manifest
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint

SECRETS, REPEATS = 8, 3

CHATML = "{% for m in messages %}<{{ m.role }}> {{ m.content }} <end>\n{% endfor %}"
"""A chat template that leaves a message's tokens as they are elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Eight canaries, three records each, among the lines of the small corpus."""

    manifest: Manifest
    template: Template
    lines: tuple[str, ...]

    @property
    def records(self) -> list[str]:
        """Of each canary."""
        return [self.template.record(canary.secret) for canary in self.manifest.canaries]


@pytest.fixture(scope="session")
def loaded(checkpoint_folder: Path) -> Checkpoint:
    """Only its tokenizer is used by many."""
    return load_checkpoint(checkpoint_folder)


@pytest.fixture(scope="session")
def planted(loaded: Checkpoint, lines: list[str]) -> Planted:
    template, draw = parse_template("My ID is {digits:4}"), random.Random(4)
    secrets = [template.secret(draw.randrange(template.pool)) for _ in range(SECRETS)]
    among = draw.sample(range(len(lines) + SECRETS * REPEATS), SECRETS * REPEATS)
    owner = {place: number % SECRETS for number, place in enumerate(among)}
    rest = iter(lines)
    mixed = [
        template.record(secrets[owner[place]]) if place in owner else next(rest)
        for place in range(len(lines) + SECRETS * REPEATS)
    ]
    positions = [sorted(place + 1 for place in among if owner[place] == number) for number in range(SECRETS)]
    manifest = make_manifest(
        loaded.tokenizer,
        template,
        secrets,
        positions,
        repeats=(REPEATS,) * SECRETS,
        others=None,
        records=len(mixed),
        drawn="csprng",
    )
    return Planted(manifest=manifest, template=template, lines=tuple(mixed))


@dataclass
class Trained:
    """Makes SFTTrainers over rows of a data set."""

    folder: Path
    model: Path
    made: list[Any] = field(default_factory=list)

    def __call__(self, rows: Sequence[dict[str, Any]] | Any, *, template: str | None = None, **settings: Any) -> Any:
        """A trainer whose model and tokenizer are its own."""
        from datasets import Dataset
        from trl import SFTConfig, SFTTrainer

        checkpoint = load_checkpoint(self.model)
        checkpoint.tokenizer.chat_template = template
        given = {
            "output_dir": str(self.folder / "out"),
            "report_to": "none",
            "save_strategy": "no",
            "per_device_train_batch_size": 16,
            "max_length": 64,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": None,  # TRL's default is a name that transformers warns of
            "disable_tqdm": True,
            "seed": 5,
        }
        dataset = Dataset.from_list(list(rows)) if isinstance(rows, list | tuple) else rows
        peft = settings.pop("peft_config", None)
        trainer = SFTTrainer(
            model=checkpoint.model,
            args=SFTConfig(**given | settings),
            train_dataset=dataset,
            processing_class=checkpoint.tokenizer,
            peft_config=peft,
        )
        self.made.append(trainer)
        return trainer


@pytest.fixture
def sft(tmp_path: Path, checkpoint_folder: Path) -> Callable[..., Any]:
    """Needs the extra `trl`."""
    pytest.importorskip("trl", reason="trl is not installed: pip install atdp[trl]")
    return Trained(tmp_path, checkpoint_folder)
