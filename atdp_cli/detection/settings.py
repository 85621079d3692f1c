"""The file of `--detector`: the settings of the detector and of its cross-check, as TOML."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from atdp_cli.errors import InputError, UsageError, did_you_mean
from atdp_cli.files.atomic_write import atomic_write, check_new
from atdp_cli.files.documents import read_whole
from atdp_cli.settings import Option, Options, contradiction, setting_error

CROSSCHECK = "crosscheck"

LONGEST_LABEL = 40
"""Characters of the label of a speaker."""

LONGEST_REASON = 200
"""Characters of the reason why lists are public."""


def _speakers(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Each label once, sorted."""
    found = sorted({label.strip() for label in labels})
    for label in found:
        if not 0 < len(label) <= LONGEST_LABEL or not label.isprintable() or ":" in label or ">" in label:
            raise contradiction(
                f"speaker_labels has {ascii(label)[:50]}, which is no label.",
                f"Give words of at most {LONGEST_LABEL} characters without : and >, such as USR, SYS and ACT.",
            )
    return tuple(found)


def _reason(text: str) -> str:
    if len(text) > LONGEST_REASON or not text.isprintable():
        raise contradiction(
            f"public_lists is no reason of at most {LONGEST_REASON} characters that show.", "Give a shorter one."
        )
    return text.strip()


class CrosscheckSettings(Options):
    """Whom to ask about what the detector may have missed."""

    model: Annotated[str, Field(pattern=r"\S", examples=["gpt-4o-mini"]), Option()]
    """Ask this language model about each sentence, spans masked. Sentences where it finds something else are sensitive
    as a whole. ε says nothing about it."""

    url: Annotated[str | None, Field(examples=["http://127.0.0.1:8000/v1"]), Option(fingerprint=False)] = None
    """An OpenAI-compatible server. Default: OPENAI_BASE_URL, or OpenAI."""

    key_file: Annotated[Path | None, Field(examples=["llm.key"]), Option(fingerprint=False)] = None
    """File with the server's key in its first line. Default: OPENAI_API_KEY."""

    send_unmasked: Annotated[bool, Field(examples=[True]), Option()] = False
    """Send the sentences as they are, secrets and all. Then any difference from the detector counts."""

    on_disagreement: Annotated[
        Literal["sensitive", "review"], Field(examples=["review"]), Option(fingerprint=False)
    ] = "sensitive"
    """sensitive: flag the whole sentence. review: leave its spans, and put it into the queue of detect --review."""


class DetectorSettings(Options):
    """How the detector looks, beside the tier, the labels and the lists of terms."""

    ner: Annotated[str | None, Field(examples=["presidio"]), Option()] = None
    """What finds named entities: presidio (pip install 'atdp[presidio]'), or hf:FOLDER, a token classifier of
    transformers as safetensors. Tokens, sentences and grammar stay spaCy's. Default: the spaCy pipeline."""

    spacy_pipeline: Annotated[str | None, Field(examples=["en_core_web_lg"]), Option()] = None
    """A spaCy pipeline with tagger, parser and ner: a package or a folder. Default: en_core_web_sm."""

    min_confidence: Annotated[float, Field(ge=0, le=1, examples=[0.5]), Option(fingerprint="recipe", public=True)] = 0.0
    """Flag only spans with this confidence or more. At 0.9 identifiers and listed names are left. Default: 0."""

    speaker_labels: Annotated[
        tuple[str, ...],
        AfterValidator(_speakers),
        Field(examples=[("USR", "SYS", "ACT")]),
        Option(fingerprint="recipe", public=True),
    ] = ()
    """Words that before : or > at the start of a line only say who speaks. They are never flagged there, nor further on
    in a line that begins with one. Usual ones are known. State what is public; do not read it off private records."""

    public_lists: Annotated[
        str,
        AfterValidator(_reason),
        Field(examples=["product names of the catalogue; J. Doe"]),
        Option(fingerprint="recipe", public=True),
    ] = ""
    """Why the lists of --allow and --deny are public, and who says so: nobody made them from the corpus, not even by
    atdp review. It is published; the lists are then part of the detector, and selective guarantees hold."""

    crosscheck: Annotated[CrosscheckSettings | None, Option()] = None
    """A language model to ask about what is not flagged. Default: nobody is asked."""


def read_detector(path: Path | None) -> DetectorSettings:
    """The settings in a file; the defaults where there is none.

    Raises:
        InputError: It cannot be read, is no TOML, or a key is unknown, of the wrong type or out of range.
    """
    if path is None:
        return DetectorSettings()
    try:
        document = tomllib.loads(read_whole(path).decode("utf-8"))
        # As JSON, which has no tuples: strict validation takes a list for one. A date is no value of any key.
        return DetectorSettings.model_validate_json(json.dumps(document, default=lambda _: {}), strict=True)
    except OSError as error:
        raise InputError(f"{path} could not be read ({error.strerror}).", "Check --detector.") from error
    except ValidationError as error:
        problem = _problem(error)
        raise InputError(f"{path}: {problem.problem}", problem.remedy) from None  # its message may quote a key
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, tomllib.TOMLDecodeError) else type(error).__name__
        raise InputError(
            f"{path} is not TOML: {what}.", "Correct the file, or write one by atdp detect --write-detector."
        ) from error


def _problem(error: ValidationError) -> UsageError:
    """What is wrong with the first key that is."""
    details = error.errors(include_url=False, include_input=True)
    first = details[0]
    place = tuple(map(str, first["loc"][: 2 if first["loc"][:1] == (CROSSCHECK,) else 1]))
    name = ".".join(place) or "the file"
    keys = list((CrosscheckSettings if len(place) > 1 else DetectorSettings).model_fields)
    match first["type"]:
        case "extra_forbidden":
            hint = did_you_mean(place[-1], keys) or f"Its keys are {', '.join(keys)}."
            return UsageError(f"the key {name!r} is not known.", hint)
        case "missing":
            return UsageError(f"the key '{name}' is missing.", "Add it.")
        case "model_type":
            return UsageError(f"{name} is no table.", f"Give the table [{CROSSCHECK}].")
        case _:
            same = [each for each in details if each["loc"][: len(place)] == first["loc"][: len(place)]]
            return setting_error(same, "", name)


def write_detector(path: Path) -> None:
    """Write a file for `--detector` that explains every setting and changes none.

    Raises:
        UsageError: There is something already, or the name does not end in .toml.
    """
    if path.suffix != ".toml":
        raise UsageError(f"--write-detector {path} does not end in .toml.", f"Call it {path}.toml.")
    check_new(path, force=False)
    with atomic_write(path) as stream:
        stream.write(detector_text().encode())


def detector_text() -> str:
    """What `write_detector` writes: a comment for each setting, with its help and an example."""
    head = (
        "# How atdp looks for what is sensitive: atdp detect CORPUS --detector FILE.toml\n"
        "# Take the # from the settings to change. Folders and files are looked for from where atdp is started.\n"
    )
    return "\n".join([head, *_explained(DetectorSettings), f"# [{CROSSCHECK}]", *_explained(CrosscheckSettings)])


def _explained(table: type[Options]) -> Iterator[str]:
    for name, field in table.model_fields.items():
        for example in field.examples or ():
            said = "".join(f"# {line.strip()}\n" for line in (field.description or "").splitlines())
            yield f"{said}# {name} = {json.dumps(example)}\n"
