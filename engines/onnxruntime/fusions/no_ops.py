"""A Slice that takes everything, and an Expand to the shape that is there, copy a tensor for nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trtc.engines.onnxruntime.fusions.graph import array, dims, is_op, same_dims

if TYPE_CHECKING:
    import onnx_ir as ir

    from trtc.engines.onnxruntime.fusions.graph import Dims


def run(model: ir.Model) -> int:
    """Remove them; returns how many."""
    found = 0
    for node in model.graph:
        source, out = (node.inputs or (None,))[0], node.outputs[0]
        # An output of the graph keeps its name; what nobody reads is removed by others.
        if source is None or out.is_graph_output() or not out.uses():
            continue
        if (is_op(node, "Slice") and _takes_all(node)) or (
            is_op(node, "Expand") and same_dims(dims(source), dims(out))
        ):
            out.replace_all_uses_with(source)
            found += 1
    return found


_TO_THE_END = 2**31 - 1
"""Ends from here on mean "to the end" (ONNX's specification of Slice names the largest int32 and int64)."""

_ADDRESSES = 2**47
"""Bytes that a process can address."""


def _takes_all(node: ir.Node) -> bool:
    """Whether a Slice begins at 0, ends behind the end, and steps by 1, on every axis that it names."""
    given = [None if value is None else array(value) for value in node.inputs[1:]]
    shape = dims(node.inputs[0])
    decided_by_a_run = any(v is not None and g is None for v, g in zip(node.inputs[1:], given, strict=True))
    # Versions before 10 have attributes.
    if len(given) < 2 or shape is None or decided_by_a_run:  # noqa: PLR2004
        return False
    starts, ends, axes, steps = (*given, None, None)[:4]
    if starts is None or ends is None or (starts != 0).any() or (steps is not None and (steps != 1).any()):
        return False
    named = range(len(ends)) if axes is None else axes
    return all(_reaches(int(end), shape, int(axis), _item_bytes(node)) for end, axis in zip(ends, named, strict=True))


def _item_bytes(node: ir.Node) -> int:
    kind = None if node.inputs[0] is None else node.inputs[0].dtype
    return 1 if kind is None or kind.bitwidth % 8 else kind.bitwidth // 8


def _reaches(end: int, shape: Dims, axis: int, item_bytes: int) -> bool:
    """Whether no tensor of this shape is longer than ``end`` along an axis."""
    size = shape[axis]
    if isinstance(size, int):
        return end >= size
    rest = math.prod(d for d in shape if isinstance(d, int))
    return end >= _TO_THE_END or end * rest * item_bytes > _ADDRESSES
