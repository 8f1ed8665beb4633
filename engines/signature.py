"""The signature: what goes in and what comes out, with every axis named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles import Dim, HostError, dim_symbols, shape_text

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_ML_DTYPES = frozenset(
    {"bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"}
    | {"int4", "uint4", "float4e2m1", "int2", "uint2"}
)
_ML_NAMES = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
}
TENSOR_TYPES = _ML_DTYPES | {
    *("float16", "float", "double", "bool", "string", "complex64", "complex128"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
"""Every element type that ONNX tensors have, as ``TensorSpec.dtype`` writes them."""
PACKED = frozenset(["int4", "uint4", "float4e2m1", "int2", "uint2"])
"""Element types that ONNX stores with several elements in one byte; they never lie in the arena."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output.

    Attributes:
        name: as in the model; any text.
        dtype: ONNX element type in lower case (``float``, ``int64``, ``bfloat16``, ``string`` ...), or a whole
            ONNX type such as ``seq(tensor(float))`` for values that are no tensors.
        dims: one dim for each axis; None when even the rank is unknown.
        used: False for a declared input that no node reads; it may be left out.
        has_default: the model holds a value for this input; a caller may leave it out.
        alias: what callers call this output where it cannot have that name in the graph (a model that returns its
            own input has two values of one name); empty otherwise.
    """

    name: str
    dtype: str
    dims: tuple[Dim, ...] | None
    used: bool = True
    has_default: bool = False
    alias: str = ""

    @property
    def public_name(self) -> str:
        """The name that callers use."""
        return self.alias or self.name

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor (sequences, optionals and maps are not)."""
        return "(" not in self.dtype

    @property
    def in_memory(self) -> bool:
        """Whether values can lie in planned memory: fixed-size elements, one or more bytes each, known rank."""
        return self.is_tensor and self.dtype != "string" and self.dtype not in PACKED and self.dims is not None

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that any axis depends on."""
        return frozenset().union(*(dim_symbols(dim) for dim in self.dims or ()))

    def __str__(self) -> str:
        shape = f" {shape_text(self.dims)}" if self.is_tensor else ""
        return f"{self.public_name}: {self.dtype}{shape}"


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs in the model's order.

    Attributes:
        inputs: what a caller gives.
        outputs: what a caller gets.
        symbols: every symbol of the inputs, in order of first appearance.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every symbol of the inputs, in order of first appearance."""
        seen: dict[str, None] = {}
        for spec in self.inputs:
            for dim in spec.dims or ():
                seen.update(dict.fromkeys(sorted(dim_symbols(dim))))
        return tuple(seen)

    @property
    def input_dims(self) -> dict[str, tuple[Dim, ...]]:
        """Axes of every tensor input of known rank, as the shape grammars need them."""
        return {spec.name: spec.dims for spec in self.inputs if spec.dims is not None}


def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """Return the numpy dtype of an ONNX element type; strings are ``object``.

    Raises:
        HostError: when the type needs the ml_dtypes package and it is not installed.
    """
    if dtype in _ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError as error:
            raise HostError(f"tensors of type {dtype} need the ml-dtypes package: pip install ml-dtypes") from error
        found: DTypeLike = getattr(ml_dtypes, _ML_NAMES.get(dtype, dtype))
        return np.dtype(found)
    return np.dtype(
        {"float": "f4", "double": "f8", "string": "O", "bool": "?", "complex64": "c8", "complex128": "c16"}.get(
            dtype, dtype
        )
    )
