"""Corpora of ABCD for default.py: records to train on, others to choose settings on, and held-out ones.

    python examples/sweep/abcd.py valid.txt --out FOLDER

A record is a line, or with --conversations the lines of a whole chat on one line, cut at --words. The three parts are
made of different chats: train.txt of the first ones, tune.txt and tune-valid.txt of those in the middle, valid.txt of
the last ones.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

END = "<|endoftext|>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chats", type=Path, help=f"lines, chats ending with {END}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--records", type=int, default=1000, help="to train on; as many to choose settings on")
    parser.add_argument("--valid-records", type=int, default=400, help="held out; as many to choose settings on")
    parser.add_argument("--conversations", action="store_true", help="a record is a chat")
    parser.add_argument("--words", type=int, default=70, help="of a chat, the first so many")
    arguments = parser.parse_args()
    chats = [
        records(text.splitlines(), arguments.words if arguments.conversations else None)
        for text in arguments.chats.read_text(encoding="utf-8").split(END)
    ]
    train, valid = arguments.records, arguments.valid_records
    first, rest = taken(chats, train)
    held_out, rest = taken(rest[::-1], valid)
    tune, rest = taken(rest, train)
    tune_valid, _ = taken(rest, valid)
    arguments.out.mkdir(parents=True, exist_ok=True)
    parts = {"train": first, "valid": held_out, "tune": tune, "tune-valid": tune_valid}
    for name, lines in parts.items():
        (arguments.out / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sys.stdout.write(", ".join(f"{name}: {len(lines)} records" for name, lines in parts.items()) + "\n")


def records(lines: Sequence[str], words: int | None) -> list[str]:
    """Of one chat: its lines, or one record of its first so many words."""
    said = [line.strip() for line in lines if line.strip()]
    return said if words is None else [" ".join(" ".join(said).split()[:words])] * bool(said)


def taken(chats: Sequence[Sequence[str]], count: int) -> tuple[list[str], Sequence[Sequence[str]]]:
    """So many records of the first chats, and the chats of which none was taken."""
    used, records = 0, 0
    while records < count and used < len(chats):
        records += len(chats[used])
        used += 1
    return list(chain.from_iterable(chats[:used]))[:count], chats[used:]


if __name__ == "__main__":
    main()
