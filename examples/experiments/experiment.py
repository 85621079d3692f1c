"""Many systems over one corpus, several times: planted, hardened, audited, measured. A stopped run goes on later."""

import json
import math
import multiprocessing
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from atdp_cli.audit.manifest import read_manifest
from atdp_cli.audit.plant import draw_canaries, plant_canaries
from atdp_cli.audit.results import UnfinishedAudit
from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.detector import Detector
from atdp_cli.errors import AtdpError, RunError, UsageError
from atdp_cli.events import ignore
from atdp_cli.files.corpus_file import read_lines
from atdp_cli.files.private import PRIVATE, beside, private_folder
from atdp_cli.reporting.document import MADE_UP_SENTENCE, REPORT_FILE
from atdp_cli.settings import require_at_least
from atdp_cli.training.objectives import Interpolate
from atdp_cli.training.recipe import reads_reference
from examples.experiments.systems import Step, System, slug_of

if TYPE_CHECKING:
    from atdp_cli.audit.request import AuditRequest
    from atdp_cli.hardening.request import SettledRequest

AUDITED, SENTENCE, TERMS = ".audit.json", ".sentence.json", "terms.txt"
"""What is appended to a model's folder for its audit and for a sentence's perplexity; and a list for the detector."""

RELEARNT, ROUNDED = ".relearnt.audit.json", ".int8.audit.json"
"""Likewise, for its audits after `MANY_STEPS` and in int8."""

STEPS = 50
MANY_STEPS = 500

Setting = Literal["detected", "missed", "no-miss"]
"""Whether the detector sees the canaries: as it does by itself, never (an allow list), or always (a deny list)."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What every system of a table has in common.

    Attributes:
        model: The base checkpoint, which never saw the corpus.
        corpus: Plain text, a record a line.
        out: Folder of everything that is written.
        canaries: How many are drawn for each seed.
        repeats: Records of each.
        seeds: Independent repetitions, each with canaries, samples and noise of its own.
        records: Take the first so many of the corpus; None takes all.
        held_out_every: Of so many records one is held out; at least 2.
        valid: Records of a file that are held out, in place of those; None for none.
        allow: Lists of terms that are not sensitive.
        sentence: Looked at token by token beside the held-out records.
        attacked: Whether each model is also asked to continue the canaries' prefix, and audited again after it was
            fine-tuned on the held-out records.
        attacked_harder: Whether that is also done for ten times as long, and with weights that were rounded to int8.
    """

    model: Path
    corpus: Path
    out: Path
    canaries: int = 10
    repeats: int = 10
    seeds: int = 3
    template: str = "My ID is {digits:6}"
    tier: Tier = Tier.LOW_ENTITY
    setting: Setting = "detected"
    records: int | None = None
    held_out_every: int = 20
    valid: Path | None = None
    allow: tuple[Path, ...] = ()
    attacked: bool = False
    attacked_harder: bool = False
    sentence: str = MADE_UP_SENTENCE

    def __post_init__(self) -> None:
        for name, value in (("canaries", self.canaries), ("repeats", self.repeats), ("seeds", self.seeds)):
            require_at_least(name, value, 1)
        require_at_least("held_out_every", self.held_out_every, 2)
        if self.corpus.suffix != ".txt":
            raise UsageError(
                f"{self.corpus} is not plain text.", "Canaries are planted in .txt corpora, one record a line."
            )

    def folder(self, seed: int) -> Path:
        """Of one repetition."""
        return self.out / f"seed-{seed}"


@dataclass(frozen=True, kw_only=True)
class Node:
    """One run: a chain of steps, of which all but the last have been run before."""

    seed: int
    steps: tuple[Step, ...]

    @property
    def slug(self) -> str:
        """Its folder's name."""
        return slug_of(self.steps)

    @property
    def parent(self) -> "Node | None":
        """What it goes on from; None for the base checkpoint."""
        return Node(seed=self.seed, steps=self.steps[:-1]) if len(self.steps) > 1 else None


def prepare(experiment: Experiment) -> None:
    """Hold out some of the records, and plant new canaries among the others, for each seed. What is there stays.

    Raises:
        UsageError: The folder holds another experiment.
        InputError: Corpus or model cannot be used.
    """
    experiment.out.mkdir(parents=True, exist_ok=True)
    written = experiment.out / "experiment.json"
    ours = {name: str(value) for name, value in asdict(experiment).items() if name not in ("out", "seeds")}
    if written.exists() and json.loads(written.read_text(encoding="utf-8")) != ours:
        raise UsageError(f"{experiment.out} holds another experiment.", "Choose another --out, or remove it.")
    written.write_text(json.dumps(ours, indent=2) + "\n", encoding="utf-8")
    if not (experiment.out / "valid.txt").exists():
        for name, records in zip(("train.txt", "valid.txt"), _split(experiment), strict=True):
            (experiment.out / name).write_text("".join(f"{record}\n" for record in records), encoding="utf-8")
    for seed in range(1, experiment.seeds + 1):
        _plant(experiment, seed)


def _split(experiment: Experiment) -> tuple[list[str], list[str]]:
    """The records to train on and those that are held out."""
    records, every = _lines(experiment.corpus)[: experiment.records], experiment.held_out_every
    if experiment.valid is not None:
        return records, _lines(experiment.valid)
    held_out = [place % every == 0 for place in range(1, len(records) + 1)]
    return [r for r, held in zip(records, held_out, strict=True) if not held], list(compress(records, held_out))


def _lines(path: Path) -> list[str]:
    return [line for _, line, _ in read_lines(path) if line.strip()]


def _plant(experiment: Experiment, seed: int) -> None:
    folder = experiment.folder(seed)
    folder.mkdir(exist_ok=True)
    if (folder / "planted.txt").exists():
        return
    drawn = draw_canaries(experiment.template, count=experiment.canaries, repeats=experiment.repeats, in_out=False)
    plant_canaries(
        experiment.out / "train.txt",
        folder / "planted.txt",
        folder / "canaries.json",
        drawn,
        tokenizer=experiment.model,
        force=True,
    )
    manifest = read_manifest(folder / "canaries.json")
    terms = sorted({part for canary in manifest.canaries for part in canary.secret})
    (folder / TERMS).write_text("".join(f"{term}\n" for term in terms), encoding="utf-8")


def nodes_of(systems: Sequence[System], seeds: int) -> tuple[Node, ...]:
    """Every run that the systems need, each once, none before what it goes on from; the seeds take turns."""
    chains = dict.fromkeys(system.steps[:length] for system in systems for length in range(1, len(system.steps) + 1))
    return tuple(Node(seed=seed, steps=steps) for steps in chains for seed in range(1, seeds + 1))


def run_nodes(experiment: Experiment, nodes: Sequence[Node], *, workers: int) -> Iterator[Node]:
    """Run what has not been run, several at a time, and yield each as it is done.

    Raises:
        RunError: One of them failed; those before it stay.
    """
    waiting = [node for node in nodes if not _done(experiment, node)]
    running: dict[Future[str | None], Node] = {}
    with _pool(workers) as pool:
        while waiting or running:
            ready = [node for node in waiting if node.parent is None or _done(experiment, node.parent)]
            for node in ready:
                running[pool.submit(_run_node, experiment, node)] = node
                waiting.remove(node)
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                node = running.pop(future)
                if (problem := future.result()) is not None:
                    pool.shutdown(cancel_futures=True)
                    raise RunError(f"{node.slug}, seed {node.seed}: {problem}", "Run again; what is done stays.")
                yield node


def audit_nodes(experiment: Experiment, nodes: Sequence[Node], *, workers: int) -> Iterator[int]:
    """Audit every model that has no audit yet, and yield how many are done.

    Raises:
        RunError: A model could not be audited.
    """
    todo = [node for node in nodes if not beside(folder_of(experiment, node), SENTENCE).exists()]
    seeds = sorted({node.seed for node in todo})
    # Models of a seed share their candidates' scores under the base, so a seed is cut only where workers would idle.
    shares = max(1, math.ceil(workers / max(1, len(seeds))))
    groups = [[node for node in todo if node.seed == seed][share::shares] for seed in seeds for share in range(shares)]
    done = len(nodes) - len(todo)
    with _pool(workers) as pool:
        running = {pool.submit(_audit, experiment, group): group for group in groups if group}
        for future in as_completed(running):
            if (problem := future.result()) is not None:
                pool.shutdown(cancel_futures=True)
                raise RunError(f"seed {running[future][0].seed}: {problem}", "Run again; what is done stays.")
            done += len(running[future])
            yield done


def folder_of(experiment: Experiment, node: Node) -> Path:
    """Where a run writes its model."""
    return experiment.folder(node.seed) / node.slug


def _pool(workers: int) -> ProcessPoolExecutor:
    # Torch and a fork do not go together.
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_one_thread)


def _one_thread() -> None:
    from atdp_cli.model.device import use_threads

    use_threads(1)


def _done(experiment: Experiment, node: Node) -> bool:
    return (beside(folder_of(experiment, node), PRIVATE) / REPORT_FILE).exists()


def _detector(experiment: Experiment, seed: int, tier: Tier | None) -> Detector:
    folder = experiment.folder(seed)
    terms = (folder / TERMS,)
    return Detector(
        tier=tier or experiment.tier,
        store=private_folder(folder / "planted.txt"),
        allow=(*experiment.allow, *(terms if experiment.setting == "missed" else ())),
        deny=terms if experiment.setting == "no-miss" else (),
    )


def _reference(experiment: Experiment, step: Step, start: Path) -> Path | None:
    """The model that a step reads: the base, or to negate a task vector the model that the step starts from."""
    if not any(reads_reference(stage) for stage in step.recipe):
        return None
    negates = any(isinstance(each.objective, Interpolate) and each.objective.beta < 0 for each in step.recipe)
    return start if negates else experiment.model


def _run_node(experiment: Experiment, node: Node) -> str | None:
    """Why the run failed; None where it did not."""
    from atdp_cli.hardening.fingerprint import fingerprint
    from atdp_cli.hardening.model import load_model
    from atdp_cli.hardening.plan import plan_request
    from atdp_cli.hardening.request import SettledRequest
    from atdp_cli.hardening.run import LIBRARY
    from atdp_cli.hardening.train import run_plan
    from atdp_cli.hardening.workspace import check_output

    folder, step = experiment.folder(node.seed), node.steps[-1]
    start = experiment.model if node.parent is None else folder_of(experiment, node.parent)
    request = SettledRequest(
        model=start,
        data=(folder / "planted.txt",),
        output=folder_of(experiment, node),
        recipe_name=step.part,
        recipe=step.recipe,
        detector=_detector(experiment, node.seed, step.tier),
        checkpoint_history="public",
        manifest=folder / "canaries.json",
        eval_data=experiment.out / "valid.txt",
        reference=_reference(experiment, step, start),
        jitter_seed=node.seed,
        target_epsilon=step.epsilon,
        lora_rank=step.lora_rank,
        merge_adapter=step.lora_rank is not None,
        save_dtype="float32",
        checkpoint_every=0,
        force=True,
    )
    try:
        planned = plan_request(_by_default(request) if step.by_default else request)
        check_output(request.output, force=request.force, resume=request.resume)
        run_plan(planned, fingerprint(planned), load_model(planned.request, ignore), ignore, LIBRARY.stop_signal)
    except AtdpError as error:
        return str(error)
    return None


def _by_default(request: "SettledRequest") -> "SettledRequest":
    """The request with the learning rate and --tune that `harden` takes where no recipe is given."""
    from atdp_cli.hardening.request import with_learning_rate, with_tune

    return with_tune(with_learning_rate(request))


def _audit(experiment: Experiment, nodes: Sequence[Node]) -> str | None:
    """Audit models of one seed. Why that failed; None where it did not."""
    from atdp_cli.audit.request import AuditRequest

    folders = [folder_of(experiment, node) for node in nodes]
    manifest = experiment.folder(nodes[0].seed) / "canaries.json"
    plain = AuditRequest(reference=experiment.model, manifest=manifest)
    request = plain.replace(**_attacks(experiment))
    try:
        _audit_left(folders, AUDITED, request)
        if experiment.attacked_harder:
            _audit_left(folders, RELEARNT, plain.replace(**_relearning(experiment, MANY_STEPS)))
            _audit_rounded(folders, plain)
        _measure_sentence(experiment, folders)
    except AtdpError as error:
        return str(error)
    return None


def _audit_left(folders: Sequence[Path], suffix: str, request: "AuditRequest") -> None:
    """Audit those that have no file of this suffix yet.

    Raises:
        RunError: An audit did not end.
    """
    from atdp_cli.audit.run import audit_canary

    left = [folder for folder in folders if not beside(folder, suffix).exists()]
    audits = audit_canary(request.replace(models=tuple(left))).models if left else ()
    for folder, audit in zip(left, audits, strict=True):
        if isinstance(audit, UnfinishedAudit):
            raise RunError(audit.reasons[0], "Run again; what is done stays.")
        _write(beside(folder, suffix), audit.model_copy(update={"model": folder.name}).model_dump(mode="json"))


def _audit_rounded(folders: Sequence[Path], request: "AuditRequest") -> None:
    from examples.experiments.rounding import write_rounded

    left = [folder for folder in folders if not beside(folder, ROUNDED).exists()]
    with TemporaryDirectory() as scratch:
        copies = [write_rounded(folder, Path(scratch) / folder.name) for folder in left]
        _audit_left(copies, ROUNDED, request)
        for folder, rounded in zip(left, copies, strict=True):
            shutil.copyfile(beside(rounded, ROUNDED), beside(folder, ROUNDED))


def _attacks(experiment: Experiment) -> dict[str, Any]:
    if not experiment.attacked:
        return {}
    relearning = _relearning(experiment, STEPS)
    return relearning | {"attacks": ("extraction", *relearning["attacks"])}


def _relearning(experiment: Experiment, steps: int) -> dict[str, Any]:
    return {
        "attacks": ("relearning",),
        "continuations": 1,
        "other_text": experiment.out / "valid.txt",
        "relearning_steps": steps,
    }


def _measure_sentence(experiment: Experiment, folders: Sequence[Path]) -> None:
    """The perplexity of one sentence's sensitive and other tokens, model by model."""
    from atdp_cli.detection.scan import load_pipeline
    from atdp_cli.hardening.measure import mark_sentence
    from atdp_cli.model.checkpoint import load_checkpoint
    from atdp_cli.model.perplexity import perplexity

    pipeline = load_pipeline()
    for folder in folders:
        checkpoint = load_checkpoint(folder)
        windows = mark_sentence(experiment.sentence, Detector(tier=experiment.tier), checkpoint, pipeline)
        _write(beside(folder, SENTENCE), asdict(perplexity(checkpoint.model, windows)))


def _write(path: Path, document: Mapping[str, object]) -> None:
    """In one rename, so that an interruption leaves a whole file."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)
