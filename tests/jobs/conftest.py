"""What tests of jobs share."""

from tests.audit.conftest import bpe

__all__ = ["bpe"]
