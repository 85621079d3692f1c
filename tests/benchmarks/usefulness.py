"""What hardened models can still do: repeat a value that a chat has before, and read chats with fresh values.

    python -m tests.benchmarks.usefulness MODEL CHATS.txt --chats 200 --seeds 1 2 3 --json

Trains one epoch on the first chats of a file, each a line, by several recipes from MODEL, and compares the results on
the last ones by `atdp_cli.compare`, and by the name that the agent says once the customer is known, a made-up one.
The chats are separated by <|endoftext|>. `presidio+faker` is what people would build in an afternoon: presidio's,
each entity replaced by a value of Faker, the same one wherever a chat has it again, then ordinary fine-tuning; it needs
`pip install faker` and the extra `presidio`. `trl` trains TRL's SFTTrainer on what `atdp decoy` wrote.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from atdp_cli import DecoyRequest, HardenRequest, compare, decoy, harden
from atdp_cli.model.checkpoint import context_length, load_checkpoint

END = "<|endoftext|>"

OWN: dict[str, dict[str, Any]] = {
    "no-dp": {"recipe": "no-dp"},
    "redacted": {"recipe": "redacted"},
    "fitted-decoys": {"recipe": "fitted-decoys"},
    "fitted-decoys, drawn apart": {"recipe": "fitted-decoys", "set_": ["fitted-decoys.decoy-equality=none"]},
}
OTHERS = ("presidio+faker", "trl")

FAKED = {
    "PERSON": "name",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone_number",
    "LOCATION": "city",
    "DATE_TIME": "date",
    "URL": "url",
    "CREDIT_CARD": "credit_card_number",
    "IP_ADDRESS": "ipv4",
    "US_SSN": "ssn",
}
"""The provider of Faker for an entity of presidio; digits of all others are drawn anew."""


def chats_of(path: Path) -> list[str]:
    """Each chat on one line."""
    return [" ".join(chat.split()) for chat in path.read_text(encoding="utf-8").split(END) if chat.strip()]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def faked(lines: list[str], seed: int) -> list[str]:
    """The lines with each entity of presidio's replaced by one value a line."""
    from faker import Faker  # type: ignore[import-not-found]
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    from atdp_cli.detection.scan import installed_pipeline

    pipeline = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": installed_pipeline()}]}
    analyzer = AnalyzerEngine(nlp_engine=NlpEngineProvider(nlp_configuration=pipeline).create_engine())
    fake, dice, out = Faker(), random.Random(seed), []
    fake.seed_instance(seed)
    for line in lines:
        values: dict[str, str] = {}
        done, at = "", 0
        for found in sorted(analyzer.analyze(line, language="en"), key=lambda found: (found.start, -found.end)):
            if found.start < at:
                continue
            value = line[found.start : found.end]
            provider = FAKED.get(found.entity_type)
            if value not in values:
                drawn = "".join(str(dice.randrange(10)) if each.isdigit() else each for each in value)
                values[value] = drawn if provider is None else str(getattr(fake, provider)())
            done, at = done + line[at : found.start] + values[value], found.end
        out.append(done + line[at:])
    return out


def trained(name: str, model: Path, corpus: Path, folder: Path, *, seed: int, rate: float) -> Path:
    """A model of one epoch with batches of 8, with layers in bf16."""
    output = folder / name.replace(" ", "-")
    shared: dict[str, Any] = {
        "model": model,
        "epochs": 1,
        "batch_size": 8,
        "learning_rate": rate,
        "output": output,
        "insecure_seed": seed,
        "checkpoint_history": "public",
        "tune": "none",
        "compute_dtype": "bfloat16",
    }
    if name == "trl":
        return by_trl(model, corpus, folder, seed=seed, rate=rate)
    if name == "presidio+faker":
        lines = corpus.read_text(encoding="utf-8").splitlines()
        corpus, settings = write(folder / "faked.txt", faked(lines, seed)), OWN["no-dp"]
    else:
        settings = OWN[name]
    harden(HardenRequest(**shared | settings | {"data": [corpus]}))
    return output


def by_trl(model: Path, corpus: Path, folder: Path, *, seed: int, rate: float) -> Path:
    """TRL's SFTTrainer on the decoyed copy of an epoch."""
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    copies = folder / "decoyed"
    decoy(DecoyRequest(corpus=corpus, output=copies, epochs=1))
    [copy] = sorted(path for path in copies.iterdir() if path.suffix == ".txt")
    output = folder / "trl"
    start = AutoModelForCausalLM.from_pretrained(model)
    settings = SFTConfig(
        output_dir=str(folder / "trl-run"),
        num_train_epochs=1,
        per_device_train_batch_size=8,
        learning_rate=rate,
        max_length=min(1024, start.config.max_position_embeddings),
        seed=seed,
        bf16=True,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
    )
    trainer = SFTTrainer(
        start,
        args=settings,
        train_dataset=load_dataset("text", data_files=str(copy), split="train"),
        processing_class=AutoTokenizer.from_pretrained(model),
    )
    trainer.train()
    trainer.save_model(str(output))
    return output


PULLED_UP = re.compile(r"Account has been pulled up for ([A-Z]\w+) ([A-Z]\w+)")
"""What the agent of ABCD's chats says once the customer is known."""

SYLLABLES = "ba do fel gor hin jas kem lur mon nar pel quo ras sen tov ul vik wen yar zol".split()  # noqa: SIM905


def customers(chats: list[str]) -> list[tuple[str, str]]:
    """Chats up to where the agent says the customer's name, and that name: a made-up one, wherever the chat has it."""
    dice, prompts = random.Random(1), []
    for chat in chats:
        if not (said := PULLED_UP.search(chat)) or said[1] not in chat[: said.start()]:
            continue
        given, family = ("".join(dice.choices(SYLLABLES, k=3)).capitalize() for _ in range(2))
        before = chat[: said.start(1) - 1].replace(said[1], given).replace(said[2], family)
        prompts.append((before, f" {given} {family}"))
    return prompts


def names_said(folder: Path, prompts: list[tuple[str, str]]) -> dict[str, int]:
    """How many of these names a model says by its likeliest tokens: whole ones, and their tokens."""
    checkpoint = load_checkpoint(folder)
    whole = right = tokens = 0
    for prompt, name in prompts:
        before, said = (checkpoint.tokenizer(text)["input_ids"] for text in (prompt, name))
        ids = torch.tensor([(before + said)[-context_length(checkpoint.model) :]])
        with torch.inference_mode():
            likeliest = checkpoint.model(input_ids=ids).logits[0, -len(said) - 1 : -1].argmax(-1)
        hits = (likeliest == ids[0, -len(said) :]).tolist()
        whole, right, tokens = whole + all(hits), right + sum(hits), tokens + len(hits)
    return {"customers": len(prompts), "names": whole, "name_tokens": tokens, "name_tokens_right": right}


def main() -> None:
    """Train, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("chats_file", type=Path)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--held-out", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--recipes", nargs="+", default=[*OWN, *OTHERS])
    parser.add_argument("--learning-rate", type=float, default=2.5e-4)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    chats = chats_of(asked.chats_file)
    rows: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        corpus = write(folder / "train.txt", chats[: asked.chats])
        eval_data = write(folder / "eval.txt", chats[-asked.held_out :])
        prompts = customers(chats[-asked.held_out :])
        rows["base"] = [measured(asked.model, eval_data, prompts)]
        print("base", rows["base"], file=sys.stderr, flush=True)
        for seed in asked.seeds:
            for name in asked.recipes:
                (run := folder / f"{seed} {name}").mkdir()
                model = trained(name, asked.model, corpus, run, seed=seed, rate=asked.learning_rate)
                rows.setdefault(name, []).append(measured(model, eval_data, prompts))
                print(name, seed, rows[name][-1], file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps(rows))
    else:
        show(rows)


def measured(model: Path, eval_data: Path, prompts: list[tuple[str, str]]) -> dict[str, Any]:
    """What `compare` says of a model, and which customers' names it says."""
    [entry] = compare([model], eval_data)
    return entry.model_dump() | names_said(model, prompts)


def show(rows: dict[str, list[dict[str, Any]]]) -> None:
    """A table, with the lowest and the highest of the seeds."""
    print("| model | customers named | repeated values right | tokens right | perplexity, fresh values | true values |")
    print("|---|---|---|---|---|---|")
    for name, entries in rows.items():
        shares = sorted(entry["whole"] / entry["values"] for entry in entries)
        tokens = sorted(entry["right"] / entry["tokens"] for entry in entries)
        named = sorted(entry["names"] / entry["customers"] for entry in entries)
        columns = [f"{values[0]:.1%} to {values[-1]:.1%}" for values in (named, shares, tokens)]
        for key in ("perplexity", "raw"):
            values = sorted(entry[key]["all"] for entry in entries)
            columns.append(f"{values[0]:.2f} to {values[-1]:.2f}")
        print(f"| {name} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
