"""The commitment of a ledger to its corpus, and what it shows of a checkpoint's past. Loads no torch.

A ledger commits to the training records under a key that lies in OUT.private/. Who has the key and the corpus can show
that the ledger is of this corpus; without the key no guess of the corpus can be tested.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path

from atdp_cli.corpus.split import Split
from atdp_cli.errors import UsageError
from atdp_cli.files.documents import read_whole
from atdp_cli.files.private import KEY_BYTES, PARTIAL, PRIVATE, beside, create_private
from atdp_cli.privacy.ledger import CheckpointHistory, DeclaredTraining, Ledger, Past, ReadModel
from atdp_cli.privacy.relation import commitment
from atdp_cli.privacy.rng import insecure_stream

CORPUS_KEY_FILE = "corpus.key"
"""The file in OUT.private/ with the key under which the ledger commits to the corpus."""


def corpus_key(resumed: Path | None, model: Path, seed: int | None) -> bytes:
    """The key of the run that is resumed, or of the run that wrote the model; otherwise a new one.

    Args:
        resumed: OUT/ of a run that may be resumed; None where none is.
        seed: Of a run that protects nothing, whose new key is reproducible; None for others.
    """
    key = None if resumed is None else _key_in(beside(resumed, PARTIAL))
    key = _key_beside(model) if key is None else key
    if key is not None:
        return key
    if seed is not None:
        return insecure_stream(seed, "corpus key").uniforms(KEY_BYTES // 8).tobytes()
    return secrets.token_bytes(KEY_BYTES)


def _key_beside(model: Path) -> bytes | None:
    """The key of the run that wrote a model, from the private folder beside the model's."""
    folder = model.resolve()
    return _key_in(beside(folder, PRIVATE)) if folder.name else None


def _key_in(folder: Path) -> bytes | None:
    path = folder / CORPUS_KEY_FILE
    try:
        key = read_whole(path) if path.is_file() else b""
    except OSError:
        return None
    return key if len(key) == KEY_BYTES else None


def write_corpus_key(folder: Path, key: bytes) -> None:
    """Write the key, if it is given, into a run's private folder that has none.

    Raises:
        OSError: It cannot be written.
    """
    if key:
        create_private(folder / CORPUS_KEY_FILE, key)


def corpus_commitment(key: bytes, split: Split) -> str:
    """The commitment to the training records and to what an encoder reads for them."""
    return commitment(key, _training_texts(split))


def _training_texts(split: Split) -> Iterator[str]:
    for records in (split.records, split.sources or ()):
        yield from (record.canonical for place, record in enumerate(records) if place not in split.held_out)


def history_of(stated: CheckpointHistory, inherited: Ledger | None, model: Path, split: Split) -> CheckpointHistory:
    """Whether the first checkpoint, and those of the ledger beside it, never saw this corpus.

    What that ledger says of its corpus counts for this one where the key shows that it is the same.

    Args:
        stated: As --checkpoint-history states it.
        model: The checkpoint's folder.

    Raises:
        UsageError: --checkpoint-history public contradicts that ledger.
    """
    if inherited is None:
        return stated
    if inherited.checkpoint_history == "unknown" and stated == "public":
        raise UsageError(
            "--checkpoint-history public contradicts the ledger beside the checkpoint: the past of its first "
            "checkpoint is unknown.",
            "Leave --checkpoint-history out, or start from a checkpoint that never saw the corpus.",
        )
    known = stated == "public" or (inherited.checkpoint_history == "public" and _same_corpus(inherited, model, split))
    return "public" if known else "unknown"


def reference_past(ledger: Ledger | None, folder: Path, split: Split) -> Past:
    """The known past of a reference: from its ledger, or as the user declares it."""
    if ledger is None:
        return "declared"
    if ledger.checkpoint_history == "unknown":
        return "unknown"
    return "public" if _same_corpus(ledger, folder, split) else "declared"


def _same_corpus(ledger: Ledger, folder: Path, split: Split) -> bool:
    """Whether the key beside a model shows that every event of its ledger is of this corpus."""
    key = _key_beside(folder)
    relations = [event.relation for event in ledger.events if not isinstance(event, ReadModel | DeclaredTraining)]
    corpora = {relation.corpus for relation in relations}
    return key is not None and corpora == {corpus_commitment(key, split)}
