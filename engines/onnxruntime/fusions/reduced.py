"""Reductions over one axis as exporters write them: with the axis kept or dropped, and put back by other nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trtc.engines.onnxruntime.fusions.graph import array, axes_of, dims, is_op, number, operand

if TYPE_CHECKING:
    import onnx_ir as ir

    from trtc.engines.onnxruntime.fusions.graph import Dims

_ONLY_AXES = ("Reshape", "Unsqueeze", "Squeeze", "Expand", "Identity")


def bare(value: ir.Value | None) -> ir.Value | None:
    """Return what a value is before axes of 1 were put in or taken out."""
    while value is not None:
        node = value.producer()
        if not is_op(node, *_ONLY_AXES) or not _same_but_ones(dims(node.inputs[0]), dims(value)):
            return value
        value = node.inputs[0]
    return None


def reduced_axis(value: ir.Value, source: ir.Value, *operators: str) -> int | None:
    """Return the one axis that a value is a reduction of a source over, counted from the front; None otherwise."""
    node = value.producer()
    shape = dims(source)
    if not is_op(node, *operators) or node.inputs[0] is not source or shape is None:
        return None
    axes = axes_of(node)
    if axes is None or len(axes) != 1:
        return None
    return axes[0] % len(shape)


def mean_axis(value: ir.Value | None, source: ir.Value) -> int | None:
    """Return the one axis that a value is the mean of a source over."""
    value, shape = bare(value), dims(source)
    node = None if value is None else value.producer()
    if value is None or node is None or shape is None:
        return None
    if is_op(node, "ReduceMean"):
        return reduced_axis(value, source, "ReduceMean")
    if not is_op(node, "Mul", "Div"):
        return None
    for total in node.inputs if node.op_type == "Mul" else node.inputs[:1]:
        by = number(operand(node, total), len(shape))
        inner = bare(total)
        axis = None if inner is None or by is None else reduced_axis(inner, source, "ReduceSum")
        size = None if axis is None else shape[axis]
        if by is not None and isinstance(size, int) and size:
            count = by if node.op_type == "Div" else (1 / by if by else 0.0)
            if math.isclose(count, size, rel_tol=1e-6):
                return axis
    return None


def is_kept(value: ir.Value | None, source: ir.Value, axis: int) -> bool:
    """Whether a value has the axes of a source, one of them with size 1."""
    found, shape = dims(value), dims(source)
    if found is None or shape is None:
        return False
    wanted = [*shape]
    wanted[axis] = 1
    return None not in wanted and list(found) == wanted


def is_square(value: ir.Value | None, of: ir.Value | None) -> bool:
    """Whether a value is another one times itself."""
    node = None if value is None else value.producer()
    if is_op(node, "Mul"):
        return node.inputs[0] is of and node.inputs[1] is of
    return is_op(node, "Pow") and node.inputs[0] is of and number(node.inputs[1], 0) == 2.0  # noqa: PLR2004


def not_below(value: ir.Value | None, limit: float) -> ir.Value | None:
    """Return what is limited from below by a constant, or the value itself where nothing limits it."""
    node = None if value is None else value.producer()
    if is_op(node, "Max") and len(node.inputs) == 2:  # noqa: PLR2004 (the value and the limit)
        for source in node.inputs:
            found = array(operand(node, source))
            if found is not None and found.size == 1 and found.ndim == 0 and float(found) == limit:
                return source
    return value


def _same_but_ones(left: Dims | None, right: Dims | None) -> bool:
    if left is None or right is None:
        return False
    short, other = ([d for d in each if d != 1] for each in (left, right))
    return None not in short and short == other
