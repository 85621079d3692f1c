"""The model card, `README.md` of OUT/."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from atdp_cli.report.document import PublicReport


def render_card(report: PublicReport, licence: str | None = None) -> str:
    """The card as Markdown with Hugging Face metadata.

    Args:
        licence: The starting model's licence, where its own card names one.
    """
    return _environment().get_template("card.md.j2").render(report=report, licence=licence)


@cache
def _environment() -> Environment:
    # Markdown, not HTML: nothing here comes from a corpus, and escaping would garble it.
    return Environment(  # noqa: S701
        loader=PackageLoader("atdp_cli.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
