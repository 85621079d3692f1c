"""The detector of a run: made from options, checked, and run over records with the span store."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import DEFAULT_TIER, PAPER_TIER, FlaggedRecord, Tier, merge
from atdp_cli.detection.cache import opened_store
from atdp_cli.detection.crosscheck.request import cross_checked
from atdp_cli.detection.detect import ALL_LABELS, LABELS, Detection, LabelFilter, detect_records, parse_labels
from atdp_cli.detection.entities import EntityPipeline
from atdp_cli.detection.language import Language, names_missed, watched_language
from atdp_cli.detection.ner import Ner, parse_ner, with_entities
from atdp_cli.detection.options import DetectionOptions
from atdp_cli.detection.results import CorpusCounts, CrosscheckCounts, FlaggedSummary
from atdp_cli.detection.run_on import THIS_PROCESS, Executor, make_executor, text_engine
from atdp_cli.detection.scan import installed_pipeline
from atdp_cli.detection.settings import CrosscheckSettings, DetectorSettings, read_detector
from atdp_cli.detection.term_lists import read_terms
from atdp_cli.detection.text_identity import text_identity
from atdp_cli.errors import UsageError
from atdp_cli.events import ChoiceWarning, Event, Notify
from atdp_cli.files.atomic_write import real_path
from atdp_cli.files.documents import file_sha256
from atdp_cli.files.private import private_folder
from atdp_cli.privacy.relation import Flags, HumanInput

NO_STORE = Path("none")

GivenOption = Literal["entities", "exclude", "detector"]

MAX_CHARACTERS = 2000
"""Of a record, from its beginning, so that long ones take no minutes."""


@dataclass(frozen=True, kw_only=True)
class Detector:
    """Configuration of the detector.

    Attributes:
        tier: What counts as sensitive.
        pipeline: A spaCy pipeline; None for the default one.
        ner: What finds entities in place of the pipeline; None for the pipeline itself.
        allow: Lists of terms that are not sensitive.
        deny: Lists of terms that always are.
        public_lists: Why these lists are public, as the user declares; empty where nobody does.
        speaker_labels: Words that are labels of speakers before a colon at the start of a line; see `structure`.
        label_filter: Which spans count.
        executor: Where to read.
        store: A private folder to keep what spaCy and the recognisers find in, and to look it up; None for none.
        crosscheck: A language model to ask about what is not flagged; None to ask nobody.
        file: The file of --detector, for commands that are proposed.
    """

    tier: Tier = DEFAULT_TIER
    pipeline: str | None = None
    ner: Ner | None = None
    allow: tuple[Path, ...] = ()
    deny: tuple[Path, ...] = ()
    public_lists: str = ""
    speaker_labels: tuple[str, ...] = ()
    label_filter: LabelFilter = ALL_LABELS
    executor: Executor = THIS_PROCESS
    store: Path | None = None
    crosscheck: CrosscheckSettings | None = None
    file: Path | None = None


def make_detector(
    options: DetectionOptions,
    corpus: Path,
    *,
    run_on: str = "local",
    recipe: str | None = None,
    settings: DetectorSettings | None = None,
) -> Detector:
    """Make the detector that the options ask for, for this corpus.

    Args:
        run_on: As for `make_executor`.
        recipe: The recipe's name; its default tier differs.
        settings: Those of the file of --detector, if it was read already.

    Raises:
        UsageError: Options contradict each other, a label is not known, or Ray or presidio is not installed.
        InputError: The file of --detector cannot be used.
    """
    settings = settings or read_detector(options.detector)
    return Detector(
        tier=options.tier or default_tier(recipe),
        speaker_labels=settings.speaker_labels,
        label_filter=_label_filter(options, settings),
        allow=options.allow,
        deny=options.deny,
        public_lists=settings.public_lists,
        pipeline=settings.spacy_pipeline,
        ner=None if settings.ner is None else parse_ner(settings.ner),
        executor=make_executor(run_on, options.workers),
        store=_store(options.store, corpus),
        crosscheck=settings.crosscheck,
        file=options.detector,
    )


def default_tier(recipe: str | None) -> Tier:
    """Return the tier that a recipe has by default."""
    return PAPER_TIER if recipe == "atdp" else DEFAULT_TIER


def _label_filter(options: DetectionOptions, settings: DetectorSettings) -> LabelFilter:
    known = LABELS if settings.spacy_pipeline is None and settings.ner is None else None
    entities = () if options.entities is None else parse_labels("entities", options.entities, known)
    exclude = () if options.exclude is None else parse_labels("exclude", options.exclude, known)
    if both := sorted(set(entities) & set(exclude)):
        raise UsageError(f"--entities and --exclude both name {both[0]}.", "Leave it out of one of them.")
    return LabelFilter(entities=entities, exclude=exclude, min_confidence=settings.min_confidence)


def _store(given: Path | None, corpus: Path) -> Path | None:
    if given == NO_STORE:
        return None
    if given is None:
        return private_folder(corpus)
    if given.suffix != ".private":
        raise UsageError(
            f"run.store={given} does not end in .private.",
            f"What was found says something about the records and stays with you; call it {given}.private.",
        )
    return given


def flags_of(detector: Detector, *, spans: bool, review: bool, extra_spans: bool = False) -> Flags:
    """Describe, for the ledger, what flags the records of a run.

    Args:
        spans: Whether a file has them, in the detector's place.
        review: Whether people review them each epoch.
        extra_spans: Whether files have more of them.
    """
    human: dict[HumanInput, object] = {
        "allow": detector.allow and not detector.public_lists,
        "deny": detector.deny and not detector.public_lists,
        "spans": spans,
        "extra-spans": extra_spans,
        "review-each-epoch": review,
    }
    labels = ALL_LABELS if spans else detector.label_filter
    return Flags(
        detector=None if spans else text_identity(detector.pipeline, _settings_of(detector)),
        tier=detector.tier.value,
        human=tuple(option for option, given in human.items() if given),
        crosscheck=detector.crosscheck is not None,
        public_lists=detector.public_lists if detector.allow or detector.deny else "",
        labels=labels.entities,
        without=labels.exclude,
        least_confidence=labels.min_confidence,
    )


def _settings_of(detector: Detector) -> dict[str, object]:
    """Settings that change what is flagged, those that are not the default."""
    labels = detector.label_filter
    settings = {
        "ner": None if detector.ner is None else detector.ner.identity(),
        "speaker_labels": sorted(set(detector.speaker_labels)),
        "entities": labels.entities,
        "exclude": labels.exclude,
        "min_confidence": labels.min_confidence,
        # What is public is part of the detector, so that runs with other lists do not flag the same.
        "allow": sorted(map(file_sha256, detector.allow)) if detector.public_lists else None,
        "deny": sorted(map(file_sha256, detector.deny)) if detector.public_lists else None,
    }
    return {name: value for name, value in settings.items() if value}


def options_given(detector: Detector) -> "dict[GivenOption, str]":
    """List the options that change what is flagged, except --tier, --allow and --deny, as command-line values."""
    labels = detector.label_filter
    values: dict[GivenOption, str] = {
        "entities": ",".join(labels.entities),
        "exclude": ",".join(labels.exclude),
        "detector": "" if detector.file is None else str(real_path(detector.file)),
    }
    return {name: value for name, value in values.items() if value}


def check_detector(detector: Detector) -> None:
    """Check the lists and the pipeline before spaCy is loaded.

    Raises:
        InputError: A list cannot be read, the pipeline is not installed, or a folder holds no token classifier.
        UsageError: Presidio is not installed.
    """
    for file in (*detector.allow, *detector.deny):
        read_terms(file)
    installed_pipeline(detector.pipeline)
    if detector.ner is not None:
        detector.ner.check()


def detector_files(detector: Detector) -> Iterator[Path]:
    """The files and folders that the file of --detector names."""
    if detector.pipeline is not None and Path(detector.pipeline).exists():
        yield Path(detector.pipeline)
    if detector.ner is not None and detector.ner.folder is not None:
        yield detector.ner.folder
    if detector.crosscheck is not None and detector.crosscheck.key_file is not None:
        yield detector.crosscheck.key_file


def detector_pipeline(detector: Detector, pipeline: Any) -> Any:
    """Put the detector's entity finder into a spaCy pipeline, for `run_detector`.

    Args:
        detector: How to look.
        pipeline: `load_pipeline(detector.pipeline)`.

    Raises:
        InputError: The folder of ner holds no token classifier, or a damaged one.
        UsageError: Presidio is not installed.
    """
    return with_entities(pipeline, detector.ner)


def run_detector(
    records: Iterable[Record],
    detector: Detector,
    pipeline: Any,
    notify: Notify,
    *,
    total: int | None = None,
    folder: Path | None = None,
    counts: CrosscheckCounts | None = None,
) -> Iterator[Detection]:
    """Detect what is sensitive in each record, at every tier, in the order of the records.

    Args:
        records: The records.
        detector: How to look.
        pipeline: From `detector_pipeline`.
        notify: Called with how many records are done.
        total: How many records there are, where that is known.
        folder: A private folder for what a later run can use.
        counts: Counted up by the cross-check.
    """
    allow = [term for file in detector.allow for term in read_terms(file)]
    reads = _language_of(pipeline)
    detect = partial(
        detect_records,
        watched_language(records, reads, lambda language: notify(_wrong_language(language, reads))),
        pipeline=pipeline,
        engine=text_engine(detector.executor),
        allow=allow,
        deny=[term for file in detector.deny for term in read_terms(file)],
        speaker_labels=detector.speaker_labels,
        label_filter=detector.label_filter,
        notify=notify,
        total=total,
    )
    detections = detect() if detector.store is None else _stored(detect, detector.store, pipeline, notify)
    if detector.crosscheck is None:
        return detections
    return cross_checked(
        detections,
        detector.crosscheck,
        counts or CrosscheckCounts(),
        notify,
        tier=detector.tier,
        allow=allow,
        folder=detector.store or folder,
    )


def _wrong_language(language: Language, reads: str) -> ChoiceWarning:
    advice = (
        f'Use spacy_pipeline = "{language.pipeline}" in --detector, once it is installed.'
        if language.pipeline is not None
        else "spaCy has no full pipeline for it: check what is flagged, and add --deny lists."
    )
    return ChoiceWarning(what="language", reason=f"{names_missed(language, reads)} {advice}")


def missed_names(records: Iterable[Record], pipeline: Any) -> str | None:
    """That most names of these records are missed, as a sentence, where they are in another language than is read.

    Args:
        pipeline: From `detector_pipeline`.
    """
    reads, said = _language_of(pipeline), list[str]()
    for _ in watched_language(records, reads, lambda language: said.append(names_missed(language, reads))):
        pass
    return said[0] if said else None


def _language_of(pipeline: Any) -> str:
    """spaCy's code of the language that a pipeline reads."""
    return str((pipeline.pipeline if isinstance(pipeline, EntityPipeline) else pipeline).meta["lang"])


def _stored(
    detect: Callable[..., Iterator[Detection]], folder: Path, pipeline: Any, notify: Notify
) -> Iterator[Detection]:
    with opened_store(folder, pipeline, notify) as store:
        yield from detect(lookup=store.get, store=store.put)


@dataclass(frozen=True, kw_only=True)
class FlaggedShare:
    """What is flagged in a number of records: the share of their characters, in [0, 1], and counts by label.

    It reveals something about the text.
    """

    records: int
    share: float
    found: FlaggedSummary


def flagged_share(flagged: Iterable[FlaggedRecord]) -> FlaggedShare:
    """Measure what is flagged in records."""
    counts, characters, inside = CorpusCounts(), 0, 0
    for each in flagged:
        spans = merge(each.spans)
        counts.add(each.record.text, spans)
        characters += len(each.record.text)
        inside += sum(span.end - span.start for span in spans)
    return FlaggedShare(records=counts.records, share=inside / max(1, characters), found=counts.flagged())


def detect_begun(records: Sequence[Record], detector: Detector, pipeline: Any, notify: Notify) -> Iterator[Detection]:
    """Look at the first `MAX_CHARACTERS` of records. Nothing is written; no language model is asked.

    Args:
        detector: How to look.
        pipeline: From `detector_pipeline`.
        notify: Hears only what a user might not expect, as that the text is of another language.
    """
    begun = [replace(record, text=record.text[:MAX_CHARACTERS]) for record in records]
    alone = replace(detector, crosscheck=None, executor=THIS_PROCESS, store=None)
    return run_detector(begun, alone, pipeline, _only_warnings(notify))


def _only_warnings(notify: Notify) -> Notify:
    def hear(event: Event) -> None:
        if isinstance(event, ChoiceWarning):
            notify(event)

    return hear
