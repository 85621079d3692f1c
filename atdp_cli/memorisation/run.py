"""`atdp audit-corpus` as a function, and the file of its map."""

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import floor
from pathlib import Path

from atdp_cli.audit.rank import check_same_tokenizer
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, at_tier
from atdp_cli.corpus.split import Split, check_groups, load_split, record_groups
from atdp_cli.detection.detector import Detector, detector_pipeline, run_detector
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.errors import UsageError
from atdp_cli.events import ChoiceWarning, Notify, ignore
from atdp_cli.files.atomic_write import atomic_write, same_file
from atdp_cli.files.documents import copy_fields
from atdp_cli.files.private import private_folder
from atdp_cli.memorisation.map import Findings, MappedCorpus, MappedRecord, find_memorised, rank_places
from atdp_cli.memorisation.request import MapRequest, prepare_map
from atdp_cli.memorisation.results import MAP, MemorisedPlace, MemoryDocument, MemoryMap
from atdp_cli.memorisation.scores import TokenScores, score_tokens
from atdp_cli.model.chat import ChatTemplate, chat_template_for, without_ends
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, load_tokenizer
from atdp_cli.model.device import find_device, use_threads
from atdp_cli.model.folder import check_folder, tokenizer_folder
from atdp_cli.model.hashes import seal_of
from atdp_cli.model.rendered import as_read, in_contents, render_record
from atdp_cli.replacement.decoys import public_draws, uniformly


@dataclass(frozen=True, kw_only=True, eq=False)
class CorpusMap:
    """A model's map, and the records that its places are in.

    Attributes:
        records: All of `MapRequest.data`, in its order; a place's `record` counts them from 1.
    """

    memory: MemoryMap
    records: tuple[Record, ...]


def audit_corpus(request: MapRequest, notify: Notify = ignore) -> MemoryDocument:
    """Map what each model has memorised of its corpus: the places that it knows better than held-out text.

    Returns:
        The map of each model, in order. A verdict is data: FAIL is no exception.

    Raises:
        UsageError: Options contradict each other or the corpus, or a model is an encoder-decoder one.
        InputError: A file or a model cannot be read, or a model and the reference have different tokenizers.
        RunError: A model cannot be run.
    """
    maps = map_models(prepare_map(request), request, notify)
    return MemoryDocument(models=tuple(each.memory for each in maps))


def map_models(detector: Detector, request: MapRequest, notify: Notify) -> Iterator[CorpusMap]:
    """`audit_corpus` model by model, each as it ends, with the records.

    Args:
        detector: From `prepare_map`.
    """
    use_threads(request.threads)
    find_device(request.device)
    split, groups = _split(request)
    own = len(split.records) if request.eval_data is None else split.training
    _tell_of_copies(split, notify)
    chat = _chat_template(request.models[0], split, request)
    corpus = _mapped(split, groups, detector, folder=private_folder(request.data), chat=chat, notify=notify)
    base = None if request.reference is None else _load(request.reference, request.device, chat)
    base_scores = None if base is None else _scores(base, corpus, str(request.reference), notify)
    for folder in request.models:
        checkpoint = _load(folder, request.device, chat, audited=True)
        if base is not None:
            check_same_tokenizer(folder, checkpoint, base.tokenizer_sha256)
        scores = _scores(checkpoint, corpus, str(folder), notify)
        findings = find_memorised(corpus, scores, base_scores, fdr=request.fdr)
        choose = uniformly(public_draws("decoys of a memory map"))
        places = rank_places(checkpoint, base, corpus, findings.places, decoys=request.decoys, choose=choose)
        if chat is not None:
            places = tuple(_in_records(places, split.records, chat))
        yield CorpusMap(memory=_result(folder, request, findings, places), records=split.records[:own])


def _split(request: MapRequest) -> tuple[Split, list[Hashable]]:
    """The records, which of them are held out, and the group of each."""
    files = (request.data,) if request.eval_data is None else (request.data, request.eval_data)
    if len(files) == 2 and same_file(*files):
        raise UsageError(
            "--eval-data is --data itself, which the models were trained on.", "Give records they never read."
        )
    check_groups(files, request.holdout_by, request.privacy_unit)
    split = load_split(
        (request.data,),
        unit=request.privacy_unit,
        text_field=request.text_field,
        turns=request.turns,
        max_records=None,
        valid=request.eval_data,
        holdout_by=None if request.eval_data is not None else request.holdout_by,
    )
    first = split.training if request.eval_data is not None else len(split.records)
    groups = record_groups((request.data,), split.records[:first], request.text_field, request.holdout_by)
    if request.eval_data is not None:
        groups += record_groups((request.eval_data,), split.records[first:], request.text_field, request.holdout_by)
    return split, groups


def _tell_of_copies(split: Split, notify: Notify) -> None:
    """Warn of held-out records that are in the training text too: they hide what the model remembers of them."""
    trained = {record.canonical for place, record in enumerate(split.records) if place not in split.held_out}
    copies = sum(split.records[place].canonical in trained for place in split.held_out)
    if 2 * copies > len(split.held_out):
        reason = (
            f"{copies:,} of {len(split.held_out):,} held-out records are in --data as well. If the models were trained "
            "on them, what they remember looks like chance."
        )
        notify(ChoiceWarning(what="held-out records", reason=reason))


def _chat_template(model: Path, split: Split, request: MapRequest) -> ChatTemplate | None:
    """The chat template of the conversations; None for a corpus of texts."""
    if not any(record.turns for record in split.records):
        return None  # and no tokenizer is read
    check_folder(model)
    return chat_template_for(split, load_tokenizer(tokenizer_folder(model)), request.chat_template)


def _in_records(
    places: Sequence[MemorisedPlace], records: Sequence[Record], chat: ChatTemplate
) -> Iterator[MemorisedPlace]:
    """Places of rendered conversations as places of what is said there; what is the template's alone is left out."""
    read = [(number, one) for number, each in enumerate(records, start=1) for one in each.conversations or (each,)]
    for place in places:
        number, record = read[place.record - 1]
        starts = [turn.start for turn in record.turns]
        in_message = in_contents(render_record(chat, record), starts, (place.start, place.end))
        if in_message is not None:
            yield place.model_copy(update={"record": number, "start": in_message[0], "end": in_message[1]})


def _mapped(
    split: Split,
    groups: Sequence[Hashable],
    detector: Detector,
    *,
    folder: Path | None,
    chat: ChatTemplate | None,
    notify: Notify,
) -> MappedCorpus:
    pipeline = detector_pipeline(detector, load_pipeline(detector.pipeline))
    detections = run_detector(split.records, detector, pipeline, notify, total=len(split.records), folder=folder)
    flagged = (FlaggedRecord(detection.record, at_tier(detection.spans, detector.tier)) for detection in detections)
    read = [list(as_read(record, chat)) for record in flagged]
    firsts = list(accumulate(map(len, read), initial=1))

    def mapped(*, held_out: bool) -> tuple[MappedRecord, ...]:
        places = [place for place in range(len(split.records)) if (place in split.held_out) is held_out]
        order = {group: number for number, group in enumerate(dict.fromkeys(groups[place] for place in places))}
        return tuple(
            MappedRecord(
                number=firsts[place] + at,
                text=text,
                spans=tuple(spans),
                group=order[groups[place]],
            )
            for place in places
            for at, (text, spans) in enumerate(read[place])
        )

    return MappedCorpus(training=mapped(held_out=False), held_out=mapped(held_out=True))


def _load(folder: Path, device: str, chat: ChatTemplate | None, *, audited: bool = False) -> Checkpoint:
    checkpoint = load_checkpoint(folder, device, audited=audited)
    if checkpoint.model.config.is_encoder_decoder:
        raise UsageError(
            f"{folder} is an encoder-decoder model, and a map asks what a model continues a text with.",
            "Give a causal language model.",
        )
    checkpoint.model.eval()
    # What renders a conversation writes what begins and ends it, whatever this folder's own template would.
    return checkpoint if chat is None else replace(checkpoint, tokenizer=without_ends(checkpoint.tokenizer))


def _scores(checkpoint: Checkpoint, corpus: MappedCorpus, name: str, notify: Notify) -> list[TokenScores]:
    return score_tokens(checkpoint, [record.text for record in corpus.records], name=name, notify=notify)


def _result(folder: Path, request: MapRequest, findings: Findings, places: tuple[MemorisedPlace, ...]) -> MemoryMap:
    limit = request.max_memorised
    groups = limit if limit is None or isinstance(limit, int) else floor(limit * findings.tested)
    over = groups is not None and len(findings.groups) > groups
    return copy_fields(
        MemoryMap,
        findings,
        model=str(folder),
        reference=None if request.reference is None else str(request.reference),
        fdr=request.fdr,
        fewest_findings=findings.fewest,
        memorised=len(findings.groups),
        places=places,
        max_memorised=groups,
        verdict=None if groups is None else "PASS" if not over else "FAIL" if findings.calibrated else "INCONCLUSIVE",
        weights=seal_of(folder),
    )


def write_map(mapped: CorpusMap, path: Path, *, replace: bool) -> None:
    """Write the map as a spans file that its owner alone may read, or nothing.

    It has a JSON line for each record of the corpus, most of them without a span, and no text.
    """
    by_record: dict[int, list[MemorisedPlace]] = {}
    for place in mapped.memory.places:
        by_record.setdefault(place.record, []).append(place)
    with atomic_write(path, mode=0o600, replace=replace) as stream:
        for number, record in enumerate(mapped.records, start=1):
            places = sorted(by_record.get(number, ()), key=lambda place: place.start)
            line = json.dumps({"id": record.id, "spans": [_span(place) for place in places]})
            stream.write(f"{line}\n".encode())


def _span(place: MemorisedPlace) -> dict[str, object]:
    members = place.model_dump(mode="json", exclude={"record"})
    return {"start": place.start, "end": place.end, "label": place.label, "source": MAP} | members
