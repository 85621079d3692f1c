"""The model card, `README.md` of OUT/."""

from atdp_cli.report import happened
from atdp_cli.report.document import PublicReport
from atdp_cli.report.html import SCOPES, environment, render_value


def render_card(report: PublicReport) -> str:
    """The card as Markdown with Hugging Face metadata."""
    # A finite ε that anyone may rely on; None where nothing of the corpus was read.
    epsilon = next(guarantee.epsilon for guarantee in report.guarantees if guarantee.scope == "end_to_end")
    finite = isinstance(epsilon, float) and not report.insecure_seed
    return (
        environment()
        .get_template("card.md.j2")
        .render(
            report=report,
            finite=finite,
            unbounded=epsilon is not None and not finite,
            scopes=SCOPES,
            shown=render_value,
            happened=happened,
        )
    )
