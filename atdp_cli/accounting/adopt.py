"""`atdp account --adopt`: the ledger of a model that was trained elsewhere, as its user declares it."""

from collections.abc import Sequence
from pathlib import Path

from atdp_cli.accounting.request import AccountRequest
from atdp_cli.accounting.run import with_delta
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import atomic_write, check_apart, check_new
from atdp_cli.files.documents import file_sha256, software, timestamp
from atdp_cli.model.folder import base_of, check_folder, is_adapter, weight_files
from atdp_cli.model.hashes import ledger_beside, seal_of, verified_ledger
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.ledger import (
    LEDGER_FILE,
    DeclaredTraining,
    DecoyedText,
    Ledger,
    ledger_text,
    new_run,
)
from atdp_cli.privacy.scope import is_declared


def adopt_model(model: Path, request: AccountRequest) -> Ledger:
    """Write MODEL's ledger, which seals its files: it was trained elsewhere on decoyed text, as its user declares.

    Args:
        request: Its `ledger` are those of decoyed text, at least one, and of the models that the training started from;
            its `checkpoint_history` says whether the first of these never saw the corpora. By `force` a ledger beside
            the model is replaced, but for one that fits it and was not declared.

    Raises:
        UsageError: There is a ledger already, none is of decoyed text, or --checkpoint-history contradicts one.
        InputError: The model or a ledger cannot be used.
    """
    check_folder(model)
    target = model / LEDGER_FILE
    check_apart(request.ledger, [target])
    check_new(target, force=request.force)
    if target.exists():
        _check_undeclared(model)
    composed = compose_ledgers(_with_base(model, [verified_ledger(path) for path in request.ledger]))
    runs = dict.fromkeys(event.run for event in composed.events if isinstance(event, DecoyedText))
    if not runs:
        raise UsageError(
            "No --ledger is of decoyed text.", "Give the folder that atdp decoy wrote, on whose copies it was trained."
        )
    if request.checkpoint_history == "public" and composed.checkpoint_history == "unknown":
        raise UsageError(
            "--checkpoint-history public contradicts a --ledger, by which the past of the first checkpoint is unknown.",
            "Leave --checkpoint-history out.",
        )
    weights = {file.name: file_sha256(file) for file in weight_files(model)}
    declared = DeclaredTraining(stage="declared", corpora=tuple(run for run in runs if run), weights=weights)
    adopted = composed.model_copy(
        update={
            "events": (*composed.events, declared),
            "checkpoint_history": request.checkpoint_history,
            "run": new_run(),
            "seal": seal_of(model),
            "created": timestamp(),
            "software": software(),
        }
    )
    adopted = with_delta(adopted, request.delta)
    with atomic_write(target, replace=request.force) as stream:
        stream.write(ledger_text(adopted).encode())
    return verified_ledger(model)


def _check_undeclared(model: Path) -> None:
    """Refuse to replace a ledger that fits the model and was not declared."""
    try:
        present = verified_ledger(model)
    except InputError:
        return
    if not is_declared(present):
        raise UsageError(f"{model / LEDGER_FILE} fits the model: atdp wrote both.", "Leave --adopt out.")


def _with_base(model: Path, ledgers: Sequence[Ledger]) -> Sequence[Ledger]:
    """The ledgers, followed by that of an adapter's base model."""
    base = ledger_beside(base_of(model)) if is_adapter(model) else None
    return ledgers if base is None else (*ledgers, base)
