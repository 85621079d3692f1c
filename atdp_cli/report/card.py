"""The model card, `README.md` of OUT/."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from atdp_cli.privacy.guarantee import rounded_up
from atdp_cli.report.document import PublicReport


def render_card(report: PublicReport) -> str:
    """The card as Markdown with Hugging Face metadata."""
    return _environment().get_template("card.md.j2").render(report=report, finite=_finite(report))


def _finite(report: PublicReport) -> bool:
    """Whether an ε that anyone may rely on holds end to end."""
    end_to_end = next(one.epsilon for one in report.guarantees if one.scope == "end_to_end")
    return isinstance(end_to_end, float) and not report.insecure_seed


@cache
def _environment() -> Environment:
    # Markdown, not HTML: nothing here comes from a corpus, and escaping would garble it.
    environment = Environment(  # noqa: S701
        loader=PackageLoader("atdp_cli.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["rounded_up"] = rounded_up
    return environment
