"""Two SFTTrainer runs over the same chats with planted canaries, one with decoys and one raw, and the audit of both.

    python examples/trainers/sft_twins.py MODEL CHATS OUT

MODEL is a model folder, CHATS a text file with lines that begin with `USR:` and `SYS:` in turn. It needs the extra
`atdp[trl]`, writes OUT/raw and OUT/decoyed, and prints what `atdp audit-canary OUT/raw OUT/decoyed --manifest
OUT/canaries.json --reference MODEL` found.
"""

import argparse
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

from atdp_cli.audit.manifest import Manifest, read_manifest
from atdp_cli.cli.app import run
from atdp_cli.integrations.transformers import CanaryCallback, DecoyDataset, verify_canaries
from atdp_cli.model.checkpoint import load_checkpoint

BETWEEN = " ||| "
"""Between what a user says and the answer, in a line of the corpus."""

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }} {{ message['content'] }}<|im_end|>\n{% endfor %}"
)
"""ChatML with a space where it has a line's end: after a line's end Llama's tokenizer would split the first word of a
message into other tokens than those at the beginning of a record, which are audited."""


def pairs(chats: Path, most: int) -> list[str]:
    """A line for each USR that a SYS answers."""
    turns = [line.strip() for line in chats.read_text(encoding="utf-8").splitlines() if line.strip()]
    exchanges = [
        f"{asked.removeprefix('USR:')}{BETWEEN}{answer.removeprefix('SYS:')}"
        for asked, answer in pairwise(turns)
        if asked.startswith("USR:") and answer.startswith("SYS:")
    ]
    return exchanges[:most]


def messages(line: str) -> dict[str, Any]:
    """A record as a conversation; a canary gets an answer that all of them share."""
    asked, _, answer = line.partition(BETWEEN)
    return {
        "messages": [
            {"role": "user", "content": asked.strip()},
            {"role": "assistant", "content": answer.strip() or "Thank you."},
        ]
    }


def train(  # noqa: PLR0917 - a run
    model: Path, train_on: Any, out: Path, manifest: Manifest, epochs: int, rate: float, *, prepared: bool
) -> None:
    """Fine-tune, with the canaries' exposures after each epoch, and save. Decoys leave no canary to be in the loss."""
    start = load_checkpoint(model)
    tokenizer = start.tokenizer
    tokenizer.chat_template = CHATML
    trainer = SFTTrainer(
        model=start.model,
        args=SFTConfig(
            output_dir=str(out.with_suffix(".trainer")),
            num_train_epochs=epochs,
            learning_rate=rate,
            per_device_train_batch_size=8,
            max_length=96,
            bf16=False,
            gradient_checkpointing=None,
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            seed=1,
            remove_unused_columns=not prepared,
            dataset_kwargs={"skip_prepare_dataset": True} if prepared else None,
        ),
        train_dataset=train_on,
        processing_class=tokenizer,
    )
    reached = verify_canaries(trainer.get_train_dataloader(), manifest, tokenizer, model=trainer.model)
    print(out.name, "canaries in the loss:", sum(canary.reached for canary in reached), "of", len(reached))
    print(*sorted({canary.explanation for canary in reached if not canary.reached}), sep="\n")
    watch = CanaryCallback(manifest, model).attach(trainer)
    began = time.process_time()
    trainer.train()
    print(out.name, "CPU seconds:", round(time.process_time() - began))
    print(out.name, "mean exposures:", [{k: round(v, 2) for k, v in event.logs().items()} for event in watch.history])
    trainer.save_model(str(out))
    tokenizer.save_pretrained(out)


def tokenised(tokenizer: PreTrainedTokenizerFast, line: str) -> dict[str, list[int]]:
    """What SFTTrainer makes of a conversation, for a data set that it does not prepare."""
    text = tokenizer.apply_chat_template(messages(line)["messages"], tokenize=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"][:96]
    return {"input_ids": ids, "labels": ids}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("chats", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    given = parser.parse_args()
    out: Path = given.out
    out.mkdir(parents=True)
    corpus, planted, spans, canaries = (
        out / name for name in ("chats.txt", "planted.txt", "spans.jsonl", "canaries.json")
    )
    corpus.write_text("\n".join(pairs(given.chats, given.pairs)) + "\n", encoding="utf-8")
    plant = ["plant-canary", corpus, "-o", planted, "--manifest", canaries, "--tokenizer", given.model]
    for command in (
        [*plant, "--count", 10, "--repeats", 10, "-q"],
        ["detect", planted, "--tier", "high-entity", "-o", spans, "-q", "--set", "run.store=none"],
    ):
        if code := run([str(part) for part in command]):
            raise SystemExit(code)
    manifest, tokenizer = read_manifest(canaries), load_checkpoint(given.model).tokenizer
    tokenizer.chat_template = CHATML
    lines = planted.read_text(encoding="utf-8").splitlines()
    raw = Dataset.from_list([messages(line) for line in lines])
    train(given.model, raw, out / "raw", manifest, given.epochs, given.learning_rate, prepared=False)
    decoyed = DecoyDataset(planted, spans, lambda line: tokenised(tokenizer, line))
    train(given.model, decoyed.for_trl(), out / "decoyed", manifest, given.epochs, given.learning_rate, prepared=True)
    audit = ["audit-canary", out / "raw", out / "decoyed", "--manifest", canaries, "--reference", given.model]
    print("exit code", run([str(part) for part in audit]))


if __name__ == "__main__":
    main()
