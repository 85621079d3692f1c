"""What finds the entities in place of spaCy's recogniser, as --backend names it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atdp_cli.errors import UsageError
from atdp_cli.jobs.presidio import PRESIDIO, PresidioEntities, presidio_identity, presidio_name, require_presidio
from atdp_cli.model.classifier_folder import classifier_identity, classifier_labels
from atdp_cli.text.detection.entities import EntityPipeline

_FOLDER = "hf:"


@dataclass(frozen=True, slots=True)
class EntityBackend:
    """A token classifier in a folder; presidio-analyzer where there is none."""

    folder: Path | None = None

    def check(self) -> None:
        """Refuse a backend that cannot be used, as far as that shows before it is loaded.

        Raises:
            UsageError: Presidio is not installed.
            InputError: The folder is no token classifier.
        """
        if self.folder is None:
            require_presidio()
        else:
            classifier_labels(self.folder)

    def option(self) -> str:
        """The value of --backend that names it."""
        return PRESIDIO if self.folder is None else f"{_FOLDER}{self.folder}"

    def identity(self) -> str:
        """Changes with anything that may change what is found; it names no folder. The backend is checked first."""
        if self.folder is None:
            return f"{PRESIDIO} {presidio_identity()}"
        return _FOLDER + classifier_identity(self.folder)


def parse_entity_backend(text: str) -> EntityBackend:
    """The value of --backend.

    Raises:
        UsageError: It is none.
    """
    if text == PRESIDIO:
        return EntityBackend()
    if not text.startswith(_FOLDER) or text == _FOLDER:
        raise UsageError(
            f"--backend {text} is not known.", "Give presidio, or hf:FOLDER with the folder of a token classifier."
        )
    return EntityBackend(Path(text.removeprefix(_FOLDER)))


def with_entities(pipeline: Any, backend: EntityBackend | None) -> Any:
    """The pipeline with the entities of a backend in place of its own; as it is where there is none.

    Args:
        pipeline: From `load_pipeline`.

    Raises:
        UsageError: Presidio is not installed.
        InputError: The folder is no token classifier, or is damaged.
    """
    if backend is None:
        return pipeline
    identity = backend.identity()
    if backend.folder is None:
        find: Any = PresidioEntities(Path(pipeline.path))
        return EntityPipeline(pipeline=pipeline, find=find, identity=identity, name=presidio_name())
    from atdp_cli.model.token_classifier import load_token_classifier

    find = load_token_classifier(backend.folder)
    return EntityPipeline(pipeline=pipeline, find=find, identity=identity, name=f"the token classifier {identity[:15]}")
