"""Values whose element types numpy lacks: bfloat16, float8, and those that share a byte.

ONNX Runtime neither takes nor gives them as numpy arrays. Their bytes go in and out by address instead.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.errors import EngineError
from trtc.engines.packed import pack, packed_bytes, unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NUMBERS = {
    "bfloat16": 16,
    "float8e4m3fn": 17,
    "float8e4m3fnuz": 18,
    "float8e5m2": 19,
    "float8e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4e2m1": 23,
    "float8e8m0": 24,
    "uint2": 25,
    "int2": 26,
}
"""Numbers of ``onnx.TensorProto.DataType`` (onnx is not needed here)."""

_BY_DTYPE = {
    "bfloat16": NUMBERS["bfloat16"],
    "float8_e4m3fn": NUMBERS["float8e4m3fn"],
    "float8_e4m3fnuz": NUMBERS["float8e4m3fnuz"],
    "float8_e5m2": NUMBERS["float8e5m2"],
    "float8_e5m2fnuz": NUMBERS["float8e5m2fnuz"],
    "float8_e8m0fnu": NUMBERS["float8e8m0"],
}


def foreign_types(session: Any) -> dict[str, str]:
    """Return the element type of each input and output of a session that numpy lacks, by name."""
    found = {}
    for value in (*session.get_inputs(), *session.get_outputs()):
        element = value.type.removeprefix("tensor(").removesuffix(")")
        if element in NUMBERS:
            found[value.name] = element
    return found


def run_raw(
    session: Any, feeds: Mapping[str, Any], types: Mapping[str, str], options: Any, outputs: Sequence[str]
) -> dict[str, Any]:
    """Run once, unbound as far as the caller can tell.

    Args:
        session: of ONNX Runtime.
        feeds: a contiguous array for each input.
        types: as ``foreign_types`` found them.
        options: of the run.
        outputs: names to return.

    Returns:
        Arrays that the caller owns; those of foreign types are ml_dtypes arrays.

    Raises:
        EngineError: for strings, sequences and optionals beside such a type: they cannot be bound.
    """
    binding = session.io_binding()
    alive = []
    for name, value in feeds.items():
        if not isinstance(value, np.ndarray) or value.dtype == object:
            raise EngineError(
                f"input {name!r} is no array of numbers, and the model takes or gives {', '.join(types.values())}: "
                "ONNX Runtime cannot run them together; cast at the model's edge"
            )
        stored = pack(value, types[name]) if name in types else value
        alive.append(stored)
        element = NUMBERS[types[name]] if name in types else value.dtype.type
        binding.bind_input(name, "cpu", 0, element, value.shape, stored.ctypes.data)
    for name in outputs:
        binding.bind_output(name, "cpu")
    session.run_with_iobinding(binding, options)
    found = binding.get_outputs()
    return {name: _read(value, types.get(name)) for name, value in zip(outputs, found, strict=True)}


def _read(value: Any, dtype: str | None) -> Any:
    if dtype is None:
        return value.numpy()
    shape = tuple(value.shape())
    size_bytes = packed_bytes(prod(shape), dtype)
    data = ctypes.string_at(value.data_ptr(), size_bytes) if size_bytes else b""
    return unpack(np.frombuffer(data, np.uint8), dtype, shape)


def element_number(dtype: np.dtype[Any]) -> int | None:
    """Return ONNX's number of a dtype that numpy lacks and whose elements have a byte or more; None for others."""
    return _BY_DTYPE.get(dtype.name)
