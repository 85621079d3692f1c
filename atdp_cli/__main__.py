"""`python -m atdp_cli`."""

from atdp_cli.cli.app import main

main()
