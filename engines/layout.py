"""Where each tensor of a call lies: pure planning, no memory is touched.

All inputs and outputs of one call are alive together, so a layout is one aligned run of places. The layouts of
all profiles share one region, whose size is the largest of them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from trtc.engines.errors import EngineError
from trtc.engines.signature import numpy_dtype
from trtc.engines.value import Value
from trtc.profiles import RequestError, dim_value, shape_text, sizes_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from trtc.engines.signature import Signature, TensorSpec
    from trtc.profiles import Sizes

HOST_ALIGNMENT_BYTES = 64
"""Cache lines and AVX-512 registers are 64 bytes."""


class Place(Value, frozen=True):
    """One tensor inside a slot's region.

    Attributes:
        name: of the tensor.
        dtype: numpy dtype of its elements.
        shape: sizes of its axes, in elements.
        offset_bytes: from the start of the region; a multiple of the alignment.
        size_bytes: bytes that the tensor uses.
    """

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    offset_bytes: int
    size_bytes: int


class Layout(Value, frozen=True):
    """The places of one call at fixed sizes.

    Attributes:
        sizes: the sizes that the call runs at.
        inputs, outputs: places by tensor name; a tensor that cannot lie in memory (strings, sequences, sizes
            that depend on the data) has none.
        late: names of outputs without a place; the engine returns them after the run.
        size_bytes: end of the last place, rounded up to the alignment.
    """

    sizes: dict[str, int]
    inputs: dict[str, Place]
    outputs: dict[str, Place]
    late: tuple[str, ...]
    size_bytes: int

    @property
    def used_bytes(self) -> int:
        """Bytes inside places; the rest of ``size_bytes`` is alignment."""
        return sum(p.size_bytes for p in (*self.inputs.values(), *self.outputs.values()))

    def check_output(self, name: str, shape: tuple[int, ...]) -> None:
        """Compare the real shape of a placed output with the planned one.

        Raises:
            EngineError: when they differ.
        """
        planned = self.outputs[name].shape
        if shape != planned:
            raise EngineError(
                f"output {name!r} came back as {shape} where its relation to the input sizes says {planned}; the "
                f"bundle's relations do not hold at {sizes_text(self.sizes)}: rebuild it with samples of these sizes, "
                "or with ranges that end before them (--dim SYMBOL=1..MAX)"
            )


def plan_layout(signature: Signature, sizes: Sizes, alignment_bytes: int = HOST_ALIGNMENT_BYTES) -> Layout:
    """Lay out one call.

    Args:
        signature: of the bundle.
        sizes: the size of every symbol of the inputs, in elements.
        alignment_bytes: every place starts at a multiple of this; a power of two.

    Raises:
        RequestError: when a relation gives a negative size, which is when the model could not run either.
    """
    cursor = 0
    late: list[str] = []

    def place(spec: TensorSpec) -> Place | None:
        nonlocal cursor
        dims = [dim_value(dim, sizes) for dim in spec.dims or ()]
        if not spec.in_memory or None in dims:
            return None
        shape = tuple(dim for dim in dims if dim is not None)
        if any(size < 0 for size in shape):
            raise RequestError(
                f"{spec.name!r} {shape_text(spec.dims)} would have shape {list(shape)} for {sizes_text(sizes)}; "
                "send a larger request"
            )
        dtype = numpy_dtype(spec.dtype)
        size_bytes = prod(shape) * dtype.itemsize
        placed = Place(spec.name, dtype, shape, cursor, size_bytes)
        cursor += -(-max(size_bytes, 1) // alignment_bytes) * alignment_bytes
        return placed

    inputs = _placed(signature.inputs, [place(spec) for spec in signature.inputs])
    outputs = _placed(signature.outputs, [place(spec) for spec in signature.outputs])
    late.extend(spec.name for spec in signature.outputs if spec.name not in outputs)
    return Layout(dict(sizes), inputs, outputs, tuple(late), cursor)


def _placed(specs: Iterable[TensorSpec], places: list[Place | None]) -> dict[str, Place]:
    return {spec.name: place for spec, place in zip(specs, places, strict=True) if place is not None}
