"""The privacy report: as data, JSON, HTML, model card and charts; verification. Private; use `atdp_cli.report`."""
