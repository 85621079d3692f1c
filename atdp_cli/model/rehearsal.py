"""Whether a checkpoint can be written again, tried without its weights."""

import copy
from pathlib import Path

from torch.distributed.fsdp import FSDPModule
from transformers import AutoConfig, PreTrainedModel

from atdp_cli.errors import AtdpError, InputError
from atdp_cli.model.adapter import is_adapted, merged, no_warnings
from atdp_cli.model.checkpoint import Checkpoint, load_tokenizer
from atdp_cli.model.tokenizer import save_tokenizer
from atdp_cli.model.tokens import tokenizer_fingerprint


def rehearse_checkpoint(checkpoint: Checkpoint, folder: Path, source: Path, *, merge: bool) -> None:
    """Do as `save_checkpoint` without the weights, and read again what it wrote.

    Args:
        folder: An empty folder.
        source: Where the model comes from, for messages.
        merge: Whether its adapter is merged, which takes a copy of the model.

    Raises:
        InputError: The tokenizer, the configuration or the generation settings cannot be saved, or do not load again
            as they were.
        OSError: The disk failed.
    """
    tokenizer, part = checkpoint.tokenizer, "The model's configuration or generation settings"
    try:
        with no_warnings():
            model = merged(copy.deepcopy(checkpoint.model)) if merge else checkpoint.model
            _save(model, folder)
            part = "The tokenizer"
            save_tokenizer(tokenizer, folder)
        again = load_tokenizer(folder)
        part = "The model's configuration"
        if not is_adapted(model):
            AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (AtdpError, OSError):
        raise
    except Exception as error:  # transformers and peft raise many kinds here
        raise InputError(
            f"{part} of {source} cannot be saved again, so the run could not end ({type(error).__name__}).",
            "Correct it, or save the model again with transformers: save_pretrained.",
        ) from error
    if tokenizer_fingerprint(again) != tokenizer_fingerprint(tokenizer):
        raise InputError(
            f"{source}: the tokenizer is another one once it is saved and loaded again.",
            "Save the model's fast tokenizer again, and look at its tokenizer_config.json.",
        )


def _save(model: PreTrainedModel, folder: Path) -> None:
    config, generation = model.config, model.generation_config
    if not isinstance(model, FSDPModule):
        model.save_pretrained(folder, state_dict={})
        return
    config.save_pretrained(folder)  # saving a sharded model takes all processes
    generation.save_pretrained(folder)
