"""What tests of jobs share."""

from tests.audit.conftest import bpe
from tests.cli.conftest import fixed_manifest

__all__ = ["bpe", "fixed_manifest"]
