"""What finds the entities in place of spaCy's recogniser, as the setting ner names it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atdp_cli.errors import UsageError
from atdp_cli.jobs.presidio import PRESIDIO, PresidioEntities, presidio_identity, presidio_name, require_presidio
from atdp_cli.model.classifier_folder import classifier_identity, classifier_labels
from atdp_cli.text.detection.entities import EntityPipeline

_FOLDER = "hf:"


@dataclass(frozen=True, slots=True)
class Ner:
    """A token classifier in a folder; presidio-analyzer where there is none."""

    folder: Path | None = None

    def check(self) -> None:
        """Refuse one that cannot be used, as far as that shows before it is loaded.

        Raises:
            UsageError: Presidio is not installed.
            InputError: The folder is no token classifier.
        """
        if self.folder is None:
            require_presidio()
        else:
            classifier_labels(self.folder)

    def identity(self) -> str:
        """Changes with anything that may change what is found; it names no folder. It is checked first."""
        if self.folder is None:
            return f"{PRESIDIO} {presidio_identity()}"
        return _FOLDER + classifier_identity(self.folder)


def parse_ner(text: str) -> Ner:
    """The value of ner.

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
    """The pipeline with the entities of `ner` in place of its own; as it is where there is none.

    Args:
        pipeline: From `load_pipeline`.

    Raises:
        UsageError: Presidio is not installed.
        InputError: The folder is no token classifier, or is damaged.
    """
    if ner is None:
        return pipeline
    identity = ner.identity()
    if ner.folder is None:
        find: Any = PresidioEntities(Path(pipeline.path))
        return EntityPipeline(pipeline=pipeline, find=find, identity=identity, name=presidio_name())
    from atdp_cli.model.token_classifier import load_token_classifier

    find = load_token_classifier(ner.folder)
    return EntityPipeline(pipeline=pipeline, find=find, identity=identity, name=f"the token classifier {identity[:15]}")
