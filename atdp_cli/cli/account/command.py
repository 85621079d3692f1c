"""`atdp account`: ε of ledgers, or of parameters or a recipe that nobody has run yet."""

from atdp_cli.cli.account.output import print_account
from atdp_cli.cli.options.shared import JsonOptions
from atdp_cli.cli.terminal.console import write_json
from atdp_cli.jobs.account_request import AccountRequest


def account_command(request: AccountRequest, printing: JsonOptions) -> None:
    """Say what ε runs have spent, or would spend: by PLD (the figure to quote), by RDP, and the paper's way.

    Give ledgers, or --sample-rate, --noise-multiplier and --steps, or --recipe and --records. Or declare how a model
    was trained elsewhere: --adopt MODEL --ledger DECOYED.
    """
    from atdp_cli.jobs.account import account

    summary = account(request)
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    else:
        print_account(summary, solved=request.solve is not None)
