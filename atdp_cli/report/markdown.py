"""The model card, `README.md` of OUT/."""

from atdp_cli.report.document import PublicReport
from atdp_cli.report.html import SCOPES, environment, render_value


def render_card(report: PublicReport) -> str:
    """The card as Markdown with Hugging Face metadata."""
    return (
        environment()
        .get_template("card.md.j2")
        .render(report=report, finite=_finite(report), scopes=SCOPES, shown=render_value)
    )


def _finite(report: PublicReport) -> bool:
    """Whether an ε that anyone may rely on holds end to end."""
    epsilon = next(guarantee.epsilon for guarantee in report.guarantees if guarantee.scope == "end_to_end")
    return isinstance(epsilon, float) and not report.insecure_seed
