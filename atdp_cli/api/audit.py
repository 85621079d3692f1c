"""`audit_canary` and `audit_corpus`: what models remember, of planted secrets and of their corpus."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from atdp_cli.api.inputs import (
    Corpus,
    LoadedOrFolder,
    SavesPretrained,
    Scratch,
    corpus_file,
    in_memory,
    model_folder,
    scratch,
    undisturbed,
)
from atdp_cli.api.keywords import AuditCanaryKeywords, AuditCorpusKeywords
from atdp_cli.api.options import check_keywords, parse_keywords
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify, ignore

if TYPE_CHECKING:
    from atdp_cli.audit_result import AuditDocument
    from atdp_cli.memory_result import MemoryDocument

Models = LoadedOrFolder | Sequence[LoadedOrFolder]
"""One model or several."""


def audit_canary(
    models: Models,
    *,
    tokenizer: SavesPretrained | None = None,
    reference: LoadedOrFolder | None = None,
    other_text: Corpus | None = None,
    notify: Notify = ignore,
    **options: Unpack[AuditCanaryKeywords],
) -> "AuditDocument":
    """Ask how well each model remembers planted secrets, as `atdp audit-canary` does.

    Args:
        models: Folders, or models in memory, which the result calls `model`, of several `model-1` and so on.
        tokenizer: Of the models in memory.
        reference: The public base model.
        other_text: The corpus of the option that has this name.
        notify: Called with each event of progress.
        options: Those of the command, with _ for -.

    Returns:
        The verdict of each model is in `models`; none is an exception.

    Raises:
        UsageError: Options contradict each other or lie out of range.
        InputError: A file, the reference, or the only model cannot be used.
    """
    from atdp_cli.audit_result import AuditDocument
    from atdp_cli.cli.audit_canary.command import audit_canary_command, run_audit

    check_keywords("audit_canary", audit_canary_command, options)
    with scratch() as place, undisturbed():
        given: dict[str, Any] = {**options, "reference": _reference(place, reference, tokenizer)}
        if other_text is not None:
            given["other_text"] = corpus_file(place, "other_text", other_text, ("text",))
        groups = parse_keywords(audit_canary_command, given)
        del groups["saying"]
        folders = _folders(place, models, tokenizer)
        audits, _, _ = run_audit(folders, notify=place.notify(notify), **groups)
        return place.document(AuditDocument(models=audits))


def audit_corpus(
    models: Models,
    data: Corpus,
    *,
    valid: Corpus | None = None,
    tokenizer: SavesPretrained | None = None,
    reference: LoadedOrFolder | None = None,
    notify: Notify = ignore,
    **options: Unpack[AuditCorpusKeywords],
) -> "MemoryDocument":
    """Map what each model has memorised of its corpus, as `atdp audit-corpus` does.

    Args:
        models: Folders, or models in memory, which the result calls `model`, of several `model-1` and so on.
        data: What the models were trained on.
        valid: Records of the same kind that no model has read.
        tokenizer: Of the models in memory.
        reference: The public base model.
        notify: Called with each event of progress.
        options: Those of the command, with _ for -. What is found in `data` in memory is not stored, unless `store`
            says where.

    Returns:
        The map of each model is in `models`, with a verdict where there is a limit; none is an exception.

    Raises:
        UsageError: Options contradict each other or lie out of range.
        InputError: A file or a model cannot be used.
    """
    from atdp_cli.cli.audit_corpus.command import audit_corpus_command, run_map
    from atdp_cli.memory_result import MemoryDocument

    check_keywords("audit_corpus", audit_corpus_command, options)
    if in_memory(data):
        for name in ("html", "sarif"):
            if options.get(name):
                raise UsageError(f"{name} is about the file of data, which is in memory.", "Give a file.")
    with scratch() as place, undisturbed():
        named = (options.get("unit"), options.get("holdout_by"))
        columns = (options.get("text_field") or "text", *filter(None, named))
        given: dict[str, Any] = {
            **options,
            "data": corpus_file(place, "data", data, columns),
            "valid": None if valid is None else corpus_file(place, "valid", valid, columns),
            "reference": _reference(place, reference, tokenizer),
        }
        if in_memory(data):
            given["no_store"] = options.get("store") is None
        groups = parse_keywords(audit_corpus_command, given)
        del groups["saying"]
        maps, _ = run_map(_folders(place, models, tokenizer), notify=place.notify(notify), **groups)
        return place.document(MemoryDocument(models=tuple(each.memory for each in maps)))


def _folders(place: Scratch, models: Models, tokenizer: SavesPretrained | None) -> list[Path]:
    if not isinstance(models, list | tuple):
        return [model_folder(place, "model", models, tokenizer)]  # type: ignore[arg-type]  # a sequence is one of these
    return [model_folder(place, f"model-{number}", model, tokenizer) for number, model in enumerate(models, start=1)]


def _reference(place: Scratch, reference: LoadedOrFolder | None, tokenizer: SavesPretrained | None) -> Path | None:
    return None if reference is None else model_folder(place, "reference", reference, tokenizer)
