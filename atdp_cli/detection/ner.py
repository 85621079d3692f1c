"""The entities that presidio-analyzer finds. No other module knows it."""

import contextlib
import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from atdp_cli.detection.entities import EntityMatch, EntityPipeline, TextWords, label_of
from atdp_cli.detection.identity import add_files
from atdp_cli.detection.token_classifier_folder import classifier_identity, classifier_labels
from atdp_cli.errors import RunError, UsageError, require_package
from atdp_cli.model.staging import changed

PRESIDIO = "presidio"

_LANGUAGE = "en"

_ENTITIES = {
    **dict.fromkeys(("PER", "PERSON"), "PERSON"),
    **dict.fromkeys(("FAC", "LOC", "GPE", "LOCATION"), "LOCATION"),
    **dict.fromkeys(("ORG", "ORGANIZATION"), "ORGANIZATION"),
    **dict.fromkeys(("DATE", "TIME"), "DATE_TIME"),
    "NORP": "NRP",
}
"""What presidio makes of spaCy's labels: its default, but with organisations."""

_IGNORED = (
    *("CARDINAL", "EVENT", "LANGUAGE", "LAW", "MONEY", "ORDINAL", "PERCENT", "PRODUCT", "QUANTITY", "WORK_OF_ART"),
    *("MISC", ""),
)
"""Labels of spaCy of which presidio says nothing."""

_LIBRARIES = ("presidio-analyzer", "spacy", "tldextract", "phonenumbers", "regex")


def require_presidio() -> None:
    """Raise UsageError unless the package presidio-analyzer is installed."""
    require_package("ner = presidio", "presidio-analyzer", "presidio")


def presidio_name() -> str:
    """Such as `presidio 2.2.366`."""
    return f"{PRESIDIO} {version('presidio-analyzer')}"


def presidio_identity() -> str:
    """SHA-256, in hexadecimal, of the versions, of the package's configuration and of this module.

    Raises:
        UsageError: It is not installed.
    """
    require_presidio()
    digest = hashlib.sha256(json.dumps([*map(version, _LIBRARIES)]).encode())
    spec = find_spec("presidio_analyzer")
    package = Path(str(spec.origin if spec else "")).parent
    add_files(digest, package, (package / "conf").rglob("*"))
    add_files(digest, Path(__file__).parent, [Path(__file__)])
    return digest.hexdigest()


class PresidioEntities:
    """Finds entities by presidio's default recognisers, without a threshold, and asks the network for nothing.

    It has a spaCy pipeline of its own, since it wants lemmas, and is made anew in every process that it is sent to.

    Args:
        folder: Of the pipeline.

    Raises:
        UsageError: It is not installed.
    """

    def __init__(self, folder: Path) -> None:
        require_presidio()
        import spacy
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

        self._folder = folder
        self._spacy = spacy.load(folder)
        settings = NerModelConfiguration(model_to_presidio_entity_mapping=_ENTITIES, labels_to_ignore=_IGNORED)
        # Not `load`, which would have spaCy use a GPU and download a pipeline that is missing.
        self._engine = SpacyNlpEngine([{"lang_code": _LANGUAGE, "model_name": str(folder)}], settings)
        self._engine.nlp = {_LANGUAGE: self._spacy}
        with _own_suffixes(), _listening():
            self._analyzer = AnalyzerEngine(nlp_engine=self._engine, supported_languages=[_LANGUAGE])

    def __reduce__(self) -> tuple[type["PresidioEntities"], tuple[Path]]:
        return type(self), (self._folder,)

    def __call__(self, texts: Sequence[TextWords]) -> list[list[EntityMatch]]:
        """The entities of each text, in order.

        Raises:
            RunError: It gave up a search that took too long, so that something may be missing.
        """
        # Without a zone the pipeline keeps every word that it ever met.
        with _own_suffixes(), _listening() as heard, self._spacy.memory_zone():
            read = self._engine.process_batch([text for text, _ in texts], _LANGUAGE, batch_size=len(texts) or 1)
            entities = [self._found(text, artifacts) for text, artifacts in read]
        if heard.gave_up:
            raise RunError(
                "presidio gave up a search that took too long, so what it found is not all.",
                "Allow it more seconds by REGEX_TIMEOUT_SECONDS, or do without ner = presidio.",
            )
        return entities

    def _found(self, text: str, artifacts: Any) -> list[EntityMatch]:
        entities = self._analyzer.analyze(text=text, language=_LANGUAGE, nlp_artifacts=artifacts)
        return [EntityMatch(each.start, each.end, label_of(each.entity_type), float(each.score)) for each in entities]


class _Heard(logging.Handler):
    """What presidio logs goes no further: where a recogniser fails it may quote what it read."""

    gave_up = False

    def emit(self, record: logging.LogRecord) -> None:
        self.gave_up |= record.exc_info is not None and isinstance(record.exc_info[1], TimeoutError)


@contextlib.contextmanager
def _listening() -> Iterator[_Heard]:
    logger, heard = logging.getLogger("presidio-analyzer"), _Heard()
    before = logger.level, logger.propagate
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    logger.addHandler(heard)
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
        logger.level, logger.propagate = before


@contextlib.contextmanager
def _own_suffixes() -> Iterator[None]:
    """Domain suffixes are those that come with tldextract; its default is to download newer ones."""
    from tldextract import TLDExtract, tldextract

    before = tldextract.TLD_EXTRACTOR
    tldextract.TLD_EXTRACTOR = TLDExtract(suffix_list_urls=(), cache_dir=None)
    try:
        yield
    finally:
        tldextract.TLD_EXTRACTOR = before


_FOLDER = "hf:"


@dataclass(frozen=True, slots=True)
class Ner:
    """A token classifier in a folder; presidio-analyzer where there is none."""

    folder: Path | None = None

    def check(self) -> None:
        """Check that it can be used, as far as that shows before it is loaded.

        Raises:
            UsageError: Presidio is not installed.
            InputError: The folder is no token classifier.
        """
        if self.folder is None:
            require_presidio()
        else:
            classifier_labels(self.folder)

    def identity(self) -> str:
        """Return a digest that changes with anything that may change what is found, and not with the folder's name."""
        if self.folder is None:
            return f"{PRESIDIO} {presidio_identity()}"
        return _FOLDER + classifier_identity(self.folder)


def parse_ner(text: str) -> Ner:
    """Parse the value of ner.

    Raises:
        UsageError: It is none.
    """
    if text == PRESIDIO:
        return Ner()
    if not text.startswith(_FOLDER) or text == _FOLDER:
        raise UsageError(
            f"ner is {text}, which is not known.", "Give presidio, or hf:FOLDER with the folder of a token classifier."
        )
    return Ner(Path(text.removeprefix(_FOLDER)))


def with_entities(pipeline: Any, ner: Ner | None) -> Any:
    """Replace the pipeline's entities by those of `ner`. Without `ner` the pipeline stays as it is.

    Args:
        pipeline: From `load_pipeline`.

    Raises:
        UsageError: Presidio is not installed.
        InputError: The folder is no token classifier, or is damaged.
        RunError: It was changed while it was read.
    """
    if ner is None:
        return pipeline
    identity = ner.identity()
    if ner.folder is None:
        find: Any = PresidioEntities(Path(pipeline.path))
        return EntityPipeline(pipeline=pipeline, find=find, identity=identity, name=presidio_name())
    from atdp_cli.detection.token_classifier import load_token_classifier

    find = load_token_classifier(ner.folder)
    if ner.identity() != identity:
        raise changed(ner.folder)
    return EntityPipeline(pipeline=pipeline, find=find, identity=identity, name=f"the token classifier {identity[:15]}")
