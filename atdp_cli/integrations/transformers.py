"""The names for the Trainer of transformers and the trainers of TRL."""

from atdp_cli.integrations.canary_callback import CanaryCallback, Exposures
from atdp_cli.integrations.decoy_dataset import DecoyDataset
from atdp_cli.integrations.verify_canaries import CanaryReach, Unreached, verify_canaries

__all__ = ["CanaryCallback", "CanaryReach", "DecoyDataset", "Exposures", "Unreached", "verify_canaries"]
