"""`atdp harden --rounds N`: harden, map what is left, and harden again."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.harden.output import show_result
from atdp_cli.events import Notify

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.harden.request import HardenRequest, Planned
    from atdp_cli.jobs.harden.result import HardenResult
    from atdp_cli.jobs.rounds import Round
    from atdp_cli.report.summary.harden import RoundEntry

Notifying = Callable[[], AbstractContextManager[Notify]]
"""Shows progress, as long as the context lasts."""


class Run(NamedTuple):
    """A run that is over."""

    planned: "Planned"
    result: "HardenResult"


def run_rounds(
    request: "HardenRequest",
    options: HardenOptions,
    console: "Console",
    notifying: Notifying,
    run: "Callable[[HardenRequest], Run | None]",
) -> "tuple[Run | None, tuple[RoundEntry, ...] | None]":
    """One run; with `--rounds`, rounds until nothing is found, they are over, or one misses its limit on perplexity.

    Args:
        request: Of the run, or the first round.

    Returns:
        The last run, None where there is none to show; and what all maps found that were drawn now, None without
        `--rounds`.

    Raises:
        UsageError: The rounds' maps could not be drawn.
    """
    if options.rounds is None:
        return run(request), None

    from atdp_cli.jobs.rounds import check_rounds, draw_map, first_round, with_map
    from atdp_cli.report.ci.memory_checks import memory_sentences

    check_rounds(request)
    if options.dry_run:
        return run(request), None
    last = options.rounds
    number, request = first_round(request, last)
    rounds: list[Round] = []
    while True:
        console.print(f"Round {number} of at most {last}.", style="bold")
        finished = run(request)
        if finished is None or finished.result.failed is not None:
            return finished, _entries(rounds)
        with notifying() as notify:
            rounds.append(draw_map(request, options.reference, number, last, notify))
        for sentence in memory_sentences(rounds[-1].memory):
            console.print(sentence)
        if number == last or rounds[-1].file is None:
            return finished, _entries(rounds)
        show_result(finished.result, console)
        number, request = number + 1, with_map(request, number)


def _entries(rounds: "Sequence[Round]") -> "tuple[RoundEntry, ...]":
    from atdp_cli.report.summary.harden import RoundEntry

    return tuple(
        RoundEntry(
            round=done.number,
            memorised=done.memory.memorised if done.file is not None else 0,
            tested=done.memory.tested,
            held_out=done.memory.held_out,
            fdr=done.memory.fdr,
            map=None if done.file is None else str(done.file),
        )
        for done in rounds
    )
