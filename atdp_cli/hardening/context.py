"""What the stages of a run work with: model, reference, data, streams, clipping engine."""

from dataclasses import dataclass

from transformers import PreTrainedModel

from atdp_cli.events import Notify
from atdp_cli.hardening.autosave import Checkpointer, no_checkpoint
from atdp_cli.hardening.budget import Cursor
from atdp_cli.hardening.data import EpochData, RunData
from atdp_cli.hardening.streams import Streams
from atdp_cli.training.clip.engine import ClippingEngine
from atdp_cli.training.options import Precision


@dataclass(frozen=True, kw_only=True, eq=False)
class StageContext:
    """What every stage works with.

    Attributes:
        reference: The model that some stages read.
        epoch_data: The records of each epoch; None where term lists are read once.
        end: Where the run has to end, as `allowance` has it; None where it may go to its end.
    """

    model: PreTrainedModel
    reference: PreTrainedModel | None
    data: RunData
    streams: Streams
    engine: ClippingEngine
    epoch_data: EpochData | None
    notify: Notify
    precision: Precision
    end: Cursor | None = None
    checkpointer: Checkpointer = no_checkpoint


def reference_of(context: StageContext) -> PreTrainedModel:
    """The reference model, for a plan that reads one."""
    if context.reference is None:
        raise ValueError("the plan has no reference")
    return context.reference
