"""The request of `audit-corpus`, and what is refused before a model is read."""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from atdp_cli.corpus.split import EACH_RECORD
from atdp_cli.detection.detector import Detector, make_detector
from atdp_cli.detection.options import ChatTemplateOptions, DetectionOptions, ExecutorOptions, RecordOptions
from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import same_file
from atdp_cli.files.corpus_file import check_readable
from atdp_cli.model.folder import check_folder
from atdp_cli.settings import DATA, ComputeOptions, Option, Options, contradiction

AUDIT = "Audit"


def _limit(text: object) -> object:
    """`12`, `0.5%` or 0.005."""
    if not isinstance(text, str):
        return text
    try:
        if text.endswith("%"):
            return float(text.removesuffix("%")) / 100
        return float(text) if "." in text else int(text)
    except ValueError:
        raise contradiction(
            "max-memorised is neither a number nor a share.", "Give a whole number, or a share such as 0.5%."
        ) from None


class MapOptions(Options):
    """The models' corpus, the text that they never read, and the settings of the map."""

    models: Annotated[tuple[Path, ...], Option(main=True, argument=True, metavar="MODEL...")]
    """One or more model folders."""

    data: Annotated[Path, Option(DATA, main=True)]
    """The corpus that the models were trained on: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet."""

    eval_data: Annotated[Path | None, Option(DATA, main=True)] = None
    """Held-out records of the same kind, which no model has read: they show what chance gives. The more, the smaller
    the p-values."""

    harden_split: Annotated[bool, Option(DATA, main=True)] = False
    """The models were trained by atdp harden on --data alone, so that it held out every twentieth record."""

    holdout_by: Annotated[str, Option(flag=False)] = EACH_RECORD
    """The unit that is tested and held out as one, as for harden: the lines between blank ones, or all records with the
    same value of a field. Use it where records of a conversation or a user are alike."""

    reference: Annotated[Path | None, Option(AUDIT, main=True)] = None
    """The public base model. With it a token's score is log p − log p_ref; without it, log p."""

    fdr: Annotated[float, Field(ge=1e-9, lt=1), Option(flag=False)] = 0.05
    """The false discovery rate: the share of the findings that may be there by chance."""

    decoys: Annotated[int, Field(ge=1, le=10_000), Option(flag=False)] = 200
    """Decoys that each flagged value among the findings is ranked among."""

    max_memorised: Annotated[
        Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0, le=1)] | None,
        Option(AUDIT, main=True, metavar="N|SHARE"),
        BeforeValidator(_limit),
    ] = None
    """Exit with 1 if more records are memorised than this number or share, such as 0.5%. Default: no limit."""


class MapRequest(MapOptions, RecordOptions, ChatTemplateOptions, DetectionOptions, ExecutorOptions, ComputeOptions):
    """The models to map, their corpus, and the limits that fail them.

        audit_corpus(MapRequest(models=["model"], data="corpus.txt", eval_data="unread.txt"))

    Raises:
        UsageError: A value is out of range, an option has no such name, or it is not said once what is held out.
    """

    @model_validator(mode="after")
    def _one_held_out(self) -> "MapRequest":
        if self.eval_data is None and not self.harden_split:
            raise UsageError(
                "Only records that the models never read tell memory from text that is merely likely.",
                "Give them by --eval-data, or --harden-split where atdp harden trained the models on --data.",
            )
        if self.eval_data is not None and self.harden_split:
            raise UsageError("--eval-data and --harden-split both say what is held out.", "Leave one of them out.")
        return self


def prepare_map(request: MapRequest) -> Detector:
    """Check a request, and return the detector that labels findings.

    Raises:
        UsageError: No model was given, or the reference is one, or an option of the detector is wrong.
        InputError: The corpus, a list or a model cannot be read.
    """
    if not request.models:
        raise UsageError("None of the folders is a model.", "Give folders as save_pretrained writes them.")
    for file in (request.data, request.eval_data):
        if file is not None:
            check_readable(file)
    for folder in request.models:
        check_folder(folder, audited=True)
    reference = request.reference
    if reference is not None:
        check_folder(reference)
    if reference is not None and any(same_file(reference, folder) for folder in request.models):
        raise UsageError("The reference is a model to map.", "Give the base that it was trained from, or leave it out.")
    return make_detector(request, request.data, run_on=request.run_on)
