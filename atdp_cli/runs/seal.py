"""The ledger of a run that has taken its last step."""

from collections.abc import Sequence

from atdp_cli.errors import ConformanceError, RunError
from atdp_cli.files.provenance import software
from atdp_cli.model.seal import seal_of
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.journal import read_journal
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, LedgerEvent, compact, private_events, read_ledger, write_ledger
from atdp_cli.runs.conformance import REMEDY
from atdp_cli.runs.resume import missing_steps, steps_of
from atdp_cli.runs.workspace import Workspace
from atdp_cli.training.plan import Plan
from atdp_cli.training.state import StageResult


def seal_ledger(plan: Plan, results: Sequence[StageResult], work: Workspace, created: str) -> Ledger:
    """Write the ledger of what was spent, as the journal has it, with the hashes of the model just written.

    Args:
        results: Of all stages.
        created: When the run started.

    Raises:
        RunError: The journal has fewer steps than the plan and the results, or the file is not what the journal has.
    """
    spent = read_journal(work.journal)
    if steps_of(plan.before) + steps_of(spent) < steps_of(plan.ledger.events) - missing_steps(plan, results):
        raise RunError("The journal has fewer steps than were taken.", "Run again; report this if it happens twice.")
    events = compact(plan.before + spent)
    ledger = plan.ledger.model_copy(
        update={
            "events": events,
            "grid": grid_for(private_events(events)),
            "seal": seal_of(work.model),
            "created": created,
            "software": software(),
        }
    )
    write_ledger(work.model / LEDGER_FILE, ledger)
    _check_written(plan, work)
    return ledger


def _check_written(plan: Plan, work: Workspace) -> None:
    """The file has every event of the journal, and of what came before the run."""
    written = read_ledger(work.model / LEDGER_FILE).events
    expected = compact(plan.before + read_journal(work.journal))
    if [_unnamed(event) for event in written] != [_unnamed(event) for event in expected]:
        raise ConformanceError("The ledger that was written is not what the journal has.", REMEDY)


def _unnamed(event: LedgerEvent) -> LedgerEvent:
    """An event without the name of the run that spent it, which the journal does not have."""
    return event.model_copy(update={"run": None})
