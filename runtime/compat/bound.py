"""What a binding binds: memory that is read, or written, when the binding runs."""

from __future__ import annotations

from math import prod
from operator import index as index_of
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trtc.engines.signature import numpy_dtype
from trtc.profiles import TrtcError
from trtc.runtime.compat.exact import InexactError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_CPU = ("cpu", 0)
_NUMBERS = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "double", 12: "uint32", 13: "uint64",
}  # fmt: skip
"""Types of ``onnx.TensorProto.DataType`` that numpy has."""
_NUMBER_OF = {numpy_dtype(name): number for number, name in _NUMBERS.items()}


class Bound(NamedTuple):
    """One input or output, as it was bound.

    Attributes:
        method, arguments: the call that did it, to be made again on a binding of ONNX Runtime.
        shape: of the memory; empty for an output that has none yet.
        array: the memory itself; None for an output that has none yet, and where nobody needs it.
    """

    method: str
    arguments: tuple[Any, ...]
    shape: tuple[int, ...] = ()
    array: np.ndarray | None = None


def bound_array(arguments: tuple[Any, ...], dtype: np.dtype[Any]) -> Bound:
    """Bind an array, as ``bind_cpu_input(name, array)``: one that is not contiguous is copied now.

    Raises:
        InexactError: for anything but an array of this type.
    """
    name, value = arguments
    if not isinstance(value, np.ndarray) or value.dtype != dtype or not value.dtype.isnative:
        raise InexactError(f"input {name!r} is bound to what is no array of {dtype}")
    array = np.asarray(value, order="C").view(dtype)  # of its own shape, as of now
    return Bound("bind_cpu_input", (name, array), array.shape, array)


def bound_address(method: str, arguments: tuple[Any, ...], dtype: np.dtype[Any]) -> Bound:
    """Bind memory by its address: ``(name, device_type, device_id, element_type, shape, buffer_ptr)``.

    Raises:
        InexactError: for another type or device, or what is no address.
    """
    name, device, index, element, dims, address = arguments
    try:
        if (device, index) != _CPU:
            raise InexactError(f"{name!r} is bound to memory of device {device!r} {index}")
        known = element_dtype(element) == dtype
        shape, start = tuple([index_of(size) for size in dims]), index_of(address)
        if not known or min(shape, default=0) < 0 or start < 1:
            raise InexactError(f"{name!r} is bound to memory that is not plainly of {dtype}")
    except (TypeError, ValueError, TrtcError) as error:
        raise InexactError(f"{name!r} is bound in a way that ONNX Runtime judges") from error
    return Bound(method, arguments, shape, _memory(start, shape, dtype, None))


def bound_value(method: str, arguments: tuple[Any, ...], dtype: np.dtype[Any], kind: type) -> Bound:
    """Bind an ``OrtValue`` (the class is ``kind``): ``(name, value)``.

    Raises:
        InexactError: for anything but a tensor on the host, of this type, that belongs to no session.
    """
    name, value = arguments
    if not isinstance(value, kind):
        raise InexactError(f"{name!r} is bound to what is no OrtValue")
    found: Any = value
    try:
        plain = found.is_tensor() and found.device_name() == "cpu" and getattr(found, "_session", None) is None
        if not plain or found.element_type() != _NUMBER_OF[dtype]:
            raise InexactError(f"{name!r} is bound to an OrtValue that is no tensor of {dtype} on the host")
        shape = tuple(found.shape())
        return Bound(method, arguments, shape, _memory(found.data_ptr(), shape, dtype, value))
    except RuntimeError as error:
        raise InexactError(f"{name!r} is bound to an OrtValue that cannot be read") from error


def element_dtype(element: Any) -> np.dtype[Any]:
    """Return the type that a program names by a numpy type or by ONNX's number.

    Raises:
        TypeError, TrtcError: for what numpy does not have.
    """
    return numpy_dtype(_NUMBERS.get(element, "")) if type(element) is int else np.dtype(element)


class BoundFeeds(NamedTuple):
    """Values of the inputs of a run that has just ended, read when somebody asks for them.

    Attributes:
        inputs: by name.
        written: returns the memory that the run wrote.
    """

    inputs: Mapping[str, Bound]
    written: Callable[[], Iterable[np.ndarray]]

    def items(self) -> list[tuple[str, np.ndarray]]:
        """Return names and arrays.

        Raises:
            TypeError: where they cannot be had: on a device, or written over by the run.
        """
        found = [(name, _array_of(bound)) for name, bound in self.inputs.items()]
        for place in self.written():
            if any(np.may_share_memory(array, place) for _, array in found):
                raise TypeError("a run wrote its output over its input")
        return found


def is_on_host(value: Any) -> bool:
    """Tell whether an ``OrtValue`` is a tensor of numbers on the host."""
    return bool(value.is_tensor() and value.device_name() == "cpu" and value.data_type() != "tensor(string)")


def value_memory(value: Any) -> np.ndarray:
    """View the memory of an ``OrtValue``.

    Raises:
        TypeError: unless it is a tensor of numbers on the host.
    """
    if not is_on_host(value):
        raise TypeError("an OrtValue that is no tensor of numbers on the host")
    return _memory(value.data_ptr(), tuple(value.shape()), numpy_dtype(value.data_type()[7:-1]), value)


def _array_of(bound: Bound) -> np.ndarray:
    if bound.array is not None:
        return bound.array
    if bound.method == "bind_ortvalue_input":
        return value_memory(bound.arguments[1])
    if bound.method == "bind_cpu_input" and bound.arguments[1].flags.c_contiguous:
        return np.asarray(bound.arguments[1])
    if bound.method == "bind_input" and bound.arguments[1] == "cpu":
        _, _, _, element, _, address = bound.arguments
        return _memory(address, bound.shape, element_dtype(element), None)
    raise TypeError(f"input {bound.arguments[0]!r} is bound to memory that is not looked at")


class _Memory:
    """Memory of somebody else, as numpy wants it told; keeps its owner."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str, owner: object) -> None:
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "data": (address, False)}
        self.owner = owner


def _memory(address: int, shape: tuple[int, ...], dtype: np.dtype[Any], owner: object) -> np.ndarray:
    if not prod(shape):
        return np.empty(shape, dtype)
    return np.asarray(_Memory(address, shape, dtype.str, owner))
