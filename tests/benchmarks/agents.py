"""Agents' conversations: does a hardened model forget what was said, and still call functions with what it is told?

    python -m tests.benchmarks.agents MODEL --conversations 200

Gives MODEL, a folder whose tokenizer knows <|im_start|> and <|im_end|>, a chat template for functions, plants canaries
that the assistant says, and trains by `no-dp` and by a recipe. Each model is audited. It is then asked for orders of
other customers, and counted is how often it calls the function with the number and the name that it was told.
"""

import argparse
import contextlib
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from atdp_cli import AuditRequest, HardenRequest, audit_canary, harden
from atdp_cli.model.checkpoint import load_checkpoint
from tests.agents import AGENT, agent_conversations, write_rows

FIELD = ("--text-field", "messages")

ASKED = 40
"""Customers that a model is asked for."""


def with_template(model: Path, folder: Path) -> Path:
    """The model with a chat template for functions."""
    shutil.copytree(model, folder)
    (folder / "chat_template.jinja").write_text(AGENT, encoding="utf-8")
    return folder


def planted(folder: Path, model: Path, count: int) -> tuple[Path, Path]:
    """A corpus with canaries, and their manifest."""
    rows = (row for row, _ in itertools.islice(agent_conversations(count + ASKED), count))
    corpus, manifest = write_rows(folder / "agents.jsonl", rows), folder / "canaries.json"
    atdp = [sys.executable, "-c", "from atdp_cli.cli.app import main; main()", "plant-canary", str(corpus), *FIELD]
    command = [*atdp, "--role", "assistant", "--tokenizer", str(model), "--count", "10", "--repeats", "10", "-q"]
    subprocess.run([*command, "-o", str(folder / "planted.jsonl"), "--manifest", str(manifest)], check=True)
    return folder / "planted.jsonl", manifest


def asked(count: int) -> Iterator[tuple[list[dict[str, Any]], list[Any], dict[str, str]]]:
    """What other customers say, the functions, and the arguments that a call should have."""
    for row, (name, order, *_) in itertools.islice(agent_conversations(count + ASKED), count, None):
        yield row["messages"][:1], row["tools"], {"order": order, "customer": name}


def right_calls(folder: Path, count: int) -> float:
    """The share of customers for whom a model calls the function with the number and the name it was told."""
    loaded = load_checkpoint(folder)
    right = 0
    for messages, tools, expected in asked(count):
        prompt = loaded.tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=True)
        ids = torch.tensor([loaded.tokenizer(prompt, add_special_tokens=False)["input_ids"]])
        with torch.no_grad():
            said = loaded.model.generate(ids, max_new_tokens=64, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
        call = re.search(r"<tool_call>\n(.*?)\n</tool_call>", loaded.tokenizer.decode(said), re.DOTALL)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            right += call is not None and json.loads(call[1])["arguments"] == expected
    return right / ASKED


def main() -> None:
    """Train, audit, ask and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--recipe", default="fitted-decoys")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--epochs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = with_template(given.model, folder / "model")
        corpus, manifest = planted(folder, model, given.conversations)
        for recipe in ("no-dp", given.recipe):
            output = folder / recipe
            request = HardenRequest(
                model=model,
                data=(corpus,),
                text_field="messages",
                manifest=manifest,
                output=output,
                recipe=recipe,
                epochs=given.epochs,
                batch_size=8,
                learning_rate=given.learning_rate,
                checkpoint_history="public",
                tune="none",
                insecure_seed=1,
                compute_dtype="bfloat16",
            )
            harden(request)
            [audited] = audit_canary(AuditRequest(models=(output,), manifest=manifest)).models
            calls = right_calls(output, given.conversations)
            exposure = None if audited.combined is None else audited.combined.mean_exposure
            row = {"verdict": audited.verdict, "exposure": exposure, "right calls": calls}
            print(json.dumps({"recipe": recipe, **row}), flush=True)


if __name__ == "__main__":
    main()
