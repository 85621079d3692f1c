"""A check that a loaded model has the parameters of the files that were checked, and the files no others."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel, get_peft_model_state_dict
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

from atdp_cli.errors import InputError

RENAMES: dict[str, Callable[[str, str], str]] = {
    "as in the file": lambda name, body: name,  # noqa: ARG005 - all have one signature
    "the file has the body alone, without its name": lambda name, body: name.removeprefix(f"{body}."),
    "the file has the body's name, the model is a body": lambda name, body: f"{body}.{name}",
}
"""A parameter's name and that of the model's body → the name in the file. Further exceptions are:

- tied parameters: one of several names of the same storage is enough;
- transformers' own conversions, such as a layer's experts in one tensor: they are undone before names are compared;
- the dtype: what is stored is converted to float32, as the model is.
"""


BUFFERS = r"(\.|^)(attn|attention)\.(masked_)?bias$|inv_freq$|position_ids$"
"""Buffers that versions of transformers have saved, in names of tensors."""


def check_base(folder: Path, model: PreTrainedModel, files: Sequence[Path]) -> None:
    """Compare each parameter of a model, or of an adapter's base, with the files, and what they have with the model.

    Buffers may be stored, and what transformers itself leaves out of a model's class: heads for several tokens.

    Args:
        folder: For the message.
        files: safetensors.

    Raises:
        InputError: A parameter is not what the files have, or not in them; or the files have a tensor that the model
            does not read.
    """
    buffers = [name for name, _ in model.named_buffers()]
    aside = "|".join([BUFFERS, *map(re.escape, buffers), *(model._keys_to_ignore_on_load_unexpected or ())])
    parameters = _as_stored(model, model.state_dict(keep_vars=True))
    _refuse_unread(folder, _check(folder, parameters, files, model.base_model_prefix), aside)


def check_adapter(
    folder: Path,
    model: PeftModel,
    files: Sequence[Path],
    *,
    base: Path,
    held: Mapping[str, torch.Tensor],
    base_files: Sequence[Path],
) -> None:
    """Compare all that an adapter trains with its file, and the rest with the base's.

    A file may repeat weights of the base, as peft writes embeddings that it adapts.

    Args:
        files: The adapter's safetensors.
        base, base_files: The folder and the safetensors of the base.
        held: The base's own parameters and buffers, from `state_dict(keep_vars=True)` before it was adapted: peft
            renames them, and keeps them.

    Raises:
        InputError: A parameter is not what the files have, or not in them; or the adapter has a tensor that it does not
            put into the model, or replaces weights of the base.
    """
    own = get_peft_model_state_dict(model, adapter_name=model.active_adapter, save_embedding_layers=False)
    trained, of_base = {tensor.data_ptr() for tensor in own.values()}, set(map(id, held.values()))
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, parameter in parameters.items():
        if parameter.data_ptr() not in trained and id(parameter) not in of_base:
            raise _unlike(folder, name)
    unread = _check(folder, own, files, "")
    repeated = {name for name in unread if id(parameters.get(name)) in of_base}
    _refuse_unread(folder, unread - repeated)
    _check(folder, {name: parameters[name] for name in repeated}, files, "")  # of two names of one, one could hide
    kept = {name: tensor for name, tensor in held.items() if tensor.data_ptr() not in trained}
    whole = model.get_base_model()
    try:
        _check(base, _as_stored(whole, kept), base_files, whole.base_model_prefix)
    except InputError as error:
        if not repeated:
            raise
        raise InputError(
            f"{folder} replaces weights of its base model, {min(repeated)} among them.",
            "Merge it with the model that it was trained on: merge_and_unload, then save_pretrained.",
        ) from error


def _as_stored(model: PreTrainedModel, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The parameters of a state as the files name and divide them: transformers' conversions are undone."""
    reverted = revert_weight_conversion(model, dict(state))
    return {
        name: tensor
        for name, tensor in reverted.items()
        if name not in state or isinstance(state[name], torch.nn.Parameter)
    }


def _check(folder: Path, parameters: Mapping[str, torch.Tensor], files: Sequence[Path], body: str) -> set[str]:
    """Compare parameters with the files; returns the names of the stored tensors that are none of them."""
    with ExitStack() as stack:
        stored = dict(_open(files, stack))
        known, unknown, unread = set[int](), list[tuple[str, torch.Tensor]](), set(stored)
        for name, tensor in parameters.items():
            in_file = next((new for rename in RENAMES.values() if (new := rename(name, body)) in stored), None)
            if in_file is None:
                unknown.append((name, tensor))
                continue
            unread.discard(in_file)
            expected = stored[in_file].get_tensor(in_file)
            if not _same(tensor, expected):
                raise _unlike(folder, name)
            known.add(tensor.data_ptr())
        for name, tensor in unknown:
            if tensor.data_ptr() not in known:
                raise _unlike(folder, name)
    return unread


def _refuse_unread(folder: Path, names: set[str], aside: str = "$^") -> None:
    unread = sorted(name for name in names if not re.search(aside, name))
    if unread:
        raise InputError(
            f"{folder} has {len(unread)} tensors that its model does not read, {unread[0]} among them.",
            "Save the model again with save_pretrained, by the configuration that it was trained with.",
        )


def _open(files: Sequence[Path], stack: ExitStack) -> Iterator[tuple[str, Any]]:
    """Each tensor's name, and the file that has it."""
    from safetensors import safe_open

    for file in files:
        tensors = stack.enter_context(safe_open(file, framework="pt"))
        for name in tensors.keys():  # noqa: SIM118 - a handle, not a mapping
            yield name, tensors


def _same(tensor: torch.Tensor, expected: torch.Tensor) -> bool:
    return tensor.shape == expected.shape and torch.equal(tensor.detach(), expected.to(tensor.dtype))


def _unlike(folder: Path, name: str) -> InputError:
    return InputError(
        f"{folder}: what was loaded as {name} is not what the checked files have.",
        "Save the model again with save_pretrained; check it for settings that change weights as they are loaded.",
    )
