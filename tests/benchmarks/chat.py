"""A chat model through planting, training, hardening and audits: what it leaks, and the perplexity of what it says.

    python -m tests.benchmarks.chat --json

stories15M gets a ChatML template, with its two tokens added to the vocabulary. Conversations of ABCD are read as
messages: what the agent says and does is the assistant's, what the customer says is the user's. Canaries are planted as
conversations in which the assistant says them. `no-dp` trains the checkpoint on all of it; the trained model is audited
with the checkpoint as reference; then it is hardened by `harden` without a recipe, with the same reference, and audited
again. `verdict` and `exposure` (mean, bits, by log p) are of these audits,
`perplexity` is of the assistants' messages in held-out conversations.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.benchmarks.stages import ROOT, SHARED

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
ROLES = {"SYS": "assistant", "ACT": "assistant", "USR": "user"}
_TURN = re.compile(r"^(SYS|ACT|USR):(.*)$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--messages", type=int, default=8, help="of each conversation, the first ones")
    parser.add_argument("--canaries", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chats = [each[: options.messages] for each in abcd(options.conversations)]
        result = measure(Path(folder), chats, options.canaries, options.repeats)
    print(json.dumps(result, indent=1) if options.json else "\n".join(f"{key}: {result[key]}" for key in result))


def measure(folder: Path, chats: Sequence[Sequence[Mapping[str, str]]], canaries: int, repeats: int) -> dict[str, Any]:
    """Every figure of the way, seconds of each command among them."""
    base, corpus = folder / "base", folder / "abcd.jsonl"
    write_chat_model(SHARED / "models" / "stories15M", base)
    corpus.write_text("".join(json.dumps({"messages": each}) + "\n" for each in chats), encoding="utf-8")
    planted, manifest, seconds = folder / "planted.jsonl", folder / "canaries.json", {}

    def run(name: str, *arguments: object) -> dict[str, Any]:
        began = time.monotonic()
        command = [sys.executable, "-m", "atdp_cli", *map(str, arguments), "--json", "--quiet"]
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
        seconds[name] = round(time.monotonic() - began)
        if ended.returncode not in (0, 1):
            raise SystemExit(f"{name}: exit code {ended.returncode}")
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    def audit(name: str, model: Path) -> dict[str, Any]:
        found = run(name, "audit-canary", model, "--manifest", manifest, "--reference", base)
        [of_model] = found["models"]
        exposures = [canary["exposure"] for canary in of_model["canaries"]]
        return {"verdict": of_model["verdict"], "exposure": round(sum(exposures) / len(exposures), 2)}

    field = ("--text-field", "messages")
    plant = ("--count", canaries, "--repeats", repeats, "--role", "assistant", "--tokenizer", base)
    run("plant-canary", "plant-canary", corpus, "-o", planted, "--manifest", manifest, *plant, *field)
    data = ("--data", planted, *field, "--manifest", manifest, "--store", "none", "--set", "run.threads=1")
    trained, hardened = folder / "trained", folder / "hardened"
    no_dp = run("no-dp", "harden", base, "-o", trained, "--recipe", "no-dp", *data)
    before = audit("audit before", trained)
    bare = run("harden", "harden", trained, "-o", hardened, "--reference", base, *data)
    after = audit("audit after", hardened)
    return {
        "conversations": len(chats),
        "before": before,
        "after": after,
        "perplexity": {
            "base": round(no_dp["perplexity"]["before"]["all"], 1),
            "no-dp": round(no_dp["perplexity"]["after"]["all"], 1),
            "hardened": round(bare["perplexity"]["after"]["all"], 1),
        },
        "seconds": seconds,
    }


def write_chat_model(source: Path, folder: Path) -> None:
    """The checkpoint with a ChatML template; its two tokens begin as the mean of all."""
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.chat_template = CHATML
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        for weight in {model.get_input_embeddings().weight, model.get_output_embeddings().weight}:
            weight[-2:] = weight[:-2].mean(0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def abcd(count: int) -> list[list[dict[str, str]]]:
    """The first conversations of ABCD as messages."""
    text = (SHARED / "data" / "abcd" / "valid.txt").read_text(encoding="utf-8")
    found = []
    for conversation in text.split("<|endoftext|>"):
        turns = [match for line in conversation.splitlines() if (match := _TURN.match(line))]
        if turns:
            found.append([{"role": ROLES[turn[1]], "content": turn[2].strip()} for turn in turns])
    return found[:count]


if __name__ == "__main__":
    main()
