"""`atdp account`: ε of ledgers, recipes and parameters. Private; use `atdp_cli.account`."""
