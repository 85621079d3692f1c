"""A summary of what a detector flagged: counts and shapes, never text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.text.detection.summary import FlaggedSummary

MOST_LABELS = 12


def show_flagged(flagged: "FlaggedSummary", console: "Console") -> None:
    """Print how many spans have each label, the commonest first, with the shape of one; and a text that is too common.

    A shape has 0 for digits and a for letters.
    """
    if not flagged.spans or console.quiet:
        return
    from rich.table import Table

    table = Table("label", "spans", "shape of one")
    table.columns[1].justify = "right"
    for label, count in flagged.by_label.most_common(MOST_LABELS):
        table.add_row(label, f"{count:,}", flagged.shapes[label])
    console.print(table)
    if len(flagged.by_label) > MOST_LABELS:
        console.print(f"And {len(flagged.by_label) - MOST_LABELS} more labels.")
    frequent = flagged.most_frequent()
    if frequent is not None:
        console.print(
            f"One text of the form {frequent.shape} is {frequent.count:,} of the {flagged.spans:,} spans "
            f"({frequent.label}). If it only says who speaks: speaker_labels in --detector, which leaves "
            f"guarantees as they are. If the label is of no use: --exclude {frequent.label}. With --allow there is no "
            "selective guarantee.",
            soft_wrap=True,
        )
