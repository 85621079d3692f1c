"""The model card, `README.md` of OUT/."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from atdp_cli.report.document import PublicReport
from atdp_cli.report.html import SCOPES, render_value


def render_card(report: PublicReport) -> str:
    """The card as Markdown with Hugging Face metadata."""
    template = _environment().get_template("card.md.j2")
    return template.render(report=report, finite=_finite(report), scopes=SCOPES, shown=render_value)


def _finite(report: PublicReport) -> bool:
    """Whether an ε that anyone may rely on holds end to end."""
    end_to_end = next(guarantee.epsilon for guarantee in report.guarantees if guarantee.scope == "end_to_end")
    return isinstance(end_to_end, float) and not report.insecure_seed


@cache
def _environment() -> Environment:
    # Markdown, not HTML: nothing here comes from a corpus, and escaping would garble it.
    return Environment(  # noqa: S701
        loader=PackageLoader("atdp_cli.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
