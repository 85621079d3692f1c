"""The options of the cross-check."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.errors import UsageError

if TYPE_CHECKING:
    from atdp_cli.text.crosscheck.request import CrossCheck

PANEL = "Cross-check"


class DisagreementOption(StrEnum):
    """What becomes of a sentence about which detector and model disagree."""

    SENSITIVE = "sensitive"
    REVIEW = "review"


CrosscheckModel = Annotated[
    str | None,
    typer.Option(
        "--crosscheck",
        metavar="MODEL",
        help="Ask this language model about each sentence, spans masked; sentences where it finds something else are "
        "sensitive as a whole. ε says nothing about it.",
        rich_help_panel=PANEL,
    ),
]
CrosscheckUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible server, such as http://127.0.0.1:8000/v1. Default: OPENAI_BASE_URL, or OpenAI.",
        rich_help_panel=PANEL,
    ),
]
SendUnmasked = Annotated[
    bool,
    typer.Option(
        "--send-unmasked",
        help="Send the sentences as they are, secrets and all; then any difference from the detector counts.",
        rich_help_panel=PANEL,
    ),
]
OnDisagreement = Annotated[
    DisagreementOption | None,
    typer.Option(
        help="Flag the whole sentence, or leave its spans and put it into the queue of detect --review. "
        "Default: sensitive.",
        rich_help_panel=PANEL,
    ),
]
LlmKeyFile = Annotated[
    Path | None,
    typer.Option(help="File with the server's key in its first line. Default: OPENAI_API_KEY.", rich_help_panel=PANEL),
]


def cross_check(
    model: str | None,
    url: str | None,
    *,
    send_unmasked: bool,
    on_disagreement: DisagreementOption | None,
    key_file: Path | None,
) -> "CrossCheck | None":
    """The same for the jobs; None without a model.

    Raises:
        UsageError: Another of the options was given without a model.
    """
    from atdp_cli.text.crosscheck.request import CrossCheck

    if model is None:
        given = {
            "--crosscheck-url": url is not None,
            "--send-unmasked": send_unmasked,
            "--on-disagreement": on_disagreement is not None,
            "--llm-key-file": key_file is not None,
        }
        for option in (name for name, there in given.items() if there):
            raise UsageError(f"{option} goes with --crosscheck.", "Name a model by --crosscheck, or leave it out.")
        return None
    return CrossCheck(
        model=model,
        url=url,
        key_file=key_file,
        masked=not send_unmasked,
        review=on_disagreement is DisagreementOption.REVIEW,
    )
