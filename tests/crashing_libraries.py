"""What the server of `tests/crashing.py` has imported, and loaded, before it forks."""

import functools

import pytest
import torch
import transformers

from atdp_cli.cli import app
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.hardening import model
from atdp_cli.hardening import model as loading
from atdp_cli.hardening import train as harden

torch.set_num_threads(1)
# To load it takes longer than a run lasts.
one_pipeline = functools.cache(load_pipeline)
one_pipeline()
pytest.MonkeyPatch().setattr(model, "load_pipeline", one_pipeline)

LIBRARIES = (app, harden, loading, transformers)
