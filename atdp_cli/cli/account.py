"""ε of ledgers on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from atdp_cli.accounting.request import AccountRequest
from atdp_cli.accounting.results import AccountSummary, ScopeEntry
from atdp_cli.cli.console import make_table, stdout_console, write_json
from atdp_cli.cli.help import JsonOptions
from atdp_cli.privacy.wording import SCOPES, rounded_up, scope_title


def print_account(summary: AccountSummary, *, solved: bool) -> None:
    """The figures of each scope as a table, and what the ledger guarantees in words.

    Args:
        solved: Whether a figure was looked for, which then comes first.
    """
    console = stdout_console()
    if solved:
        _print_solution(summary, console)
    whole = any(scope.scope == "end_to_end" for scope in summary.scopes)
    # End to end, the increment is the same.
    shown = [scope for scope in summary.scopes if not (whole and scope.scope == "increment")]
    for index, scope in enumerate(shown):
        console.print(_table(summary, scope, first=not index))
    if summary.parameters is None and shown:
        console.print(_person(summary.unit, shown))
    for line in filter(None, (*summary.sentences, summary.advice)):
        console.print(line)


def _print_solution(summary: AccountSummary, console: Console) -> None:
    if (run := summary.parameters) is not None:
        q, sigma = run.sampling_probability, run.noise_multiplier
        console.print(f"Sampling probability {q:.6g}, noise multiplier {sigma:.6g}, {run.steps:,} steps.")
    for stage in summary.stages or ():
        if stage.noise_multipliers:
            sigma = stage.noise_multipliers[0]
            console.print(f"Stage {stage.name}: {stage.steps:,} steps, noise multiplier {sigma!r} in the first epoch.")
    for stage in summary.stages or ():
        if (sigma_once := stage.release_noise_multiplier) is not None:
            console.print(f"Stage {stage.name}: noise multiplier {sigma_once!r} for its one release.")


def _table(summary: AccountSummary, figures: ScopeEntry, *, first: bool) -> Table:
    # An increment is no guarantee, so it is nothing to quote, unless it is all that was asked about.
    first = first and (figures.scope != "increment" or summary.parameters is not None)
    quoted = "PLD (quote this)" if first else "PLD"
    rows: list[tuple[str, float | None]] = [
        (quoted, figures.epsilon.pld),
        ("RDP", figures.epsilon.rdp),
        ("the paper's conversion", figures.epsilon.paper),
        ("without amplification: an observer knows every step's sample", figures.epsilon.without_amplification),
    ]
    if figures.delta == 0:
        rows = [("exact (quote this)" if first else "exact", 0.0)]
    if figures.adjacency == "zero-out":
        rows += [(f"{part.path} alone, PLD at δ = {part.delta:g}", part.epsilon) for part in summary.ledgers or ()]
    title = "A run of equal steps"
    if summary.parameters is None:
        title = scope_title(figures.scope, summary.unit)
    title = f"{title}. {figures.adjacency}, δ = {figures.delta:g}"
    cells = [(name, "–" if value is None else rounded_up(value)) for name, value in rows]
    return make_table(("accountant", "ε"), cells, title=title, right=[1])


def _person(unit: str, scopes: Sequence[ScopeEntry]) -> Table:
    rows = []
    for scope in scopes:
        cells = ("–" if group.epsilon is None else rounded_up(group.epsilon) for group in scope.person)
        rows.append((SCOPES[scope.scope], *cells))
    head = ("scope", *(str(group.records) for group in scopes[0].person))
    return make_table(head, rows, title=f"ε for so many {unit}s of one person, by PLD", right=range(1, len(head)))


def account_command(request: AccountRequest, printing: JsonOptions) -> None:
    """Compute the ε that runs have spent, or would spend: by PLD (the figure to quote), by RDP, and the paper's way.

    Give ledgers, or a recipe with its number of records, or a run of equal steps: its sampling probability, noise
    multiplier and steps. With --adopt and --ledger you declare how a model was trained elsewhere.
    """
    from atdp_cli.accounting.run import account

    summary = account(request)
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    else:
        print_account(summary, solved=request.solve is not None)
