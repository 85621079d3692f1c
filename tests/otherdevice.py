"""A device that is no CPU, in Python: its tensors are held on the CPU, and no operation takes tensors of both.

`other` is torch's device for backends outside of its tree. A tensor there is a `DeviceTensor` around the CPU tensor
that computes. An operation that is given one of them and a tensor of the CPU raises what a GPU raises, but for a tensor
without dimensions, and for copies from one device to the other.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "other"
CPU = torch.device("cpu")

_library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
_DATA: Any = vars(torch._C.TensorBase)["data"]


class DeviceTensor(torch.Tensor):
    """A tensor of the device `other`.

    Attributes:
        inner: The tensor of the CPU that holds its numbers.
    """

    inner: Any

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "DeviceTensor":
        """A tensor with the shape, strides and dtype of `inner`."""
        made: DeviceTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
        )
        made.inner = inner
        return made

    def _get_data(self) -> Any:
        return _DATA.__get__(self)

    def _set_data(self, new: "DeviceTensor") -> None:
        # This exchanges the tensor in C++, and not what is around it.
        _DATA.__set__(self, new)
        self.inner = new.inner

    data = property(_get_data, _set_data)

    def tolist(self) -> Any:
        """Its numbers, copied to the CPU."""
        return self.inner.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Run an operation on the CPU tensors of the arguments."""
        return _run(func, args, kwargs or {})


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if func._can_decompose():  # in inference mode composite operations come as they are
        return func.decompose(*args, **kwargs)
    name = func.overloadpacket.__name__
    if name == "copy_":
        _inner(args[0]).copy_(_inner(args[1]))
        return args[0]
    leaves, form = pytree.tree_flatten((args, kwargs))
    if name == "_to_copy":
        target = torch.device(kwargs.get("device") or args[0].device)
        copied = func(_inner(args[0]), **kwargs | {"device": CPU})
        return DeviceTensor(copied) if target.type == NAME else copied
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and not isinstance(leaf, DeviceTensor) and leaf.dim():
            raise RuntimeError(f"{func}: expected all tensors to be on the same device, and one is on the CPU")
    own = {id(leaf.inner): leaf for leaf in leaves if isinstance(leaf, DeviceTensor)}
    inner_args, inner_kwargs = pytree.tree_unflatten(map(_inner, leaves), form)
    result = func(*inner_args, **inner_kwargs)

    def outer(leaf: Any) -> Any:
        # What an operation has changed in place is the tensor that was given.
        if isinstance(leaf, torch.Tensor):
            return own[id(leaf)] if id(leaf) in own else DeviceTensor(leaf)
        return leaf

    return pytree.tree_map(outer, result)


def _inner(leaf: Any) -> Any:
    if isinstance(leaf, DeviceTensor):
        return leaf.inner
    return CPU if isinstance(leaf, torch.device) else leaf


def _factory(operation: Any) -> Callable[..., DeviceTensor]:
    def make(*args: Any, device: Any = None, pin_memory: Any = None, **kwargs: Any) -> DeviceTensor:
        return DeviceTensor(operation(*args, device=CPU, **kwargs))

    return make


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    _inner(target).copy_(_inner(source))
    return target


@cache
def register() -> torch.device:
    """The device, which exists in this process from now on.

    Parameters that move there stay the same objects, as on a GPU, so that tied ones stay tied.
    """
    torch.__future__.set_swap_module_params_on_conversion(True)
    _setup_privateuseone_for_python_backend(NAME)
    for operation in (torch.ops.aten.empty.memory_format, torch.ops.aten.empty_strided.default):
        _library.impl(operation, _factory(operation), "PrivateUse1")
    _library.impl("_copy_from", _copy_from, "PrivateUse1")
    return torch.device(NAME, 0)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The names of the operations that run on the device, as they run."""
    names: list[str] = []
    original = DeviceTensor.__torch_dispatch__

    def counting(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        names.append(func.overloadpacket.__name__)
        return _run(func, args, kwargs or {})

    DeviceTensor.__torch_dispatch__ = classmethod(counting)  # type: ignore[assignment]
    try:
        yield names
    finally:
        DeviceTensor.__torch_dispatch__ = original  # type: ignore[method-assign]
