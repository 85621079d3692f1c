"""The ledger of a run that has taken its last step."""

from collections.abc import Sequence

from atdp_cli.errors import RunError
from atdp_cli.files.provenance import file_sha256, software
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.journal import read_journal
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, compact, private_events, write_ledger
from atdp_cli.runs.resume import missing_steps, steps_of
from atdp_cli.runs.workspace import Workspace
from atdp_cli.training.plan import Plan
from atdp_cli.training.state import StageResult


def seal_ledger(plan: Plan, results: Sequence[StageResult], work: Workspace, created: str) -> Ledger:
    """Write the ledger of what was spent, as the journal has it, with the hashes of the weights just written.

    Args:
        results: Of all stages.
        created: When the run started.

    Raises:
        RunError: The journal has fewer steps than the plan and the results.
    """
    spent = read_journal(work.journal)
    if steps_of(plan.before) + steps_of(spent) < steps_of(plan.ledger.events) - missing_steps(plan, results):
        raise RunError("The journal has fewer steps than were taken.", "Run again; report this if it happens twice.")
    events = compact(plan.before + spent)
    ledger = plan.ledger.model_copy(
        update={
            "events": events,
            "grid": grid_for(private_events(events)),
            "seal": {file.name: file_sha256(file) for file in sorted(work.model.glob("*.safetensors"))},
            "created": created,
            "software": software(),
        }
    )
    write_ledger(work.model / LEDGER_FILE, ledger)
    return ledger
