"""`atdp harden`: plan, data, stages, checkpoints, output. Private; use `atdp_cli.harden` and `atdp_cli.plan`."""
