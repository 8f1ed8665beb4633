"""Layer normalisation over one axis, written out, with the variance in either of its forms.

(x - mean) / sqrt(variance + epsilon) * scale + bias. The variance is the mean of (x - mean)^2, or the mean of x^2 less
mean^2, which loses digits that the operator keeps: the answer is closer to the formula, and farther from the model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from trtc.engines.onnxruntime.fusions.graph import (
    array,
    between,
    constant,
    dims,
    insert,
    is_closed,
    is_float,
    is_op,
    maker,
    number,
    operand,
    path_down,
    readers,
    replace,
)
from trtc.engines.onnxruntime.fusions.reduced import bare, is_kept, is_square, mean_axis, not_below

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class _Found:
    """What was recognized.

    Attributes:
        x: what is normalised.
        axis: over which, from the front.
        epsilon: added to the variance.
        scale, bias: one element for each place of the axis.
        last: the value that is the result.
        by_squares: whether the variance is the mean of squares less the square of the mean.
    """

    x: ir.Value
    axis: int
    epsilon: float
    scale: NDArray[Any]
    bias: NDArray[Any]
    last: ir.Value
    by_squares: bool


def run(model: ir.Model) -> int:
    """Fuse those whose variance is the mean of squared differences; returns how many."""
    return _run(model, by_squares=False)


def run_by_squares(model: ir.Model) -> int:
    """Fuse the others: a mean of squares less the square of the mean rounds more than the operator does."""
    return _run(model, by_squares=True)


def _run(model: ir.Model, *, by_squares: bool) -> int:
    found = 0
    for node in list(model.graph):
        if is_op(node, "Sub") and is_float(node.outputs[0]):
            one = _find(node)
            if one is not None and one.by_squares == by_squares:
                _fuse(one)
                found += 1
    return found


def _find(centring: ir.Node) -> _Found | None:
    """Recognize from the node that takes the mean away."""
    x, mean = centring.inputs
    centred = centring.outputs[0]
    axis = mean_axis(mean, x) if x is not None and is_float(x) else None
    if x is None or axis is None or not is_kept(mean, x, axis):
        return None
    best = None
    for last in _results(centred):
        product, bias = _without_bias(last)
        parts = _parts(product, centred)
        if parts is None:
            continue
        scale, root = parts
        epsilon = _epsilon(root, x, centred, axis) if is_kept(root, x, axis) else None
        wide = _along(scale, x, axis), _along(bias, x, axis)
        if epsilon is not None and wide[0] is not None and wide[1] is not None and is_closed(between(last, x), last):
            best = _Found(x, axis, epsilon[0], wide[0], wide[1], last, by_squares=epsilon[1])
    return best


def _results(centred: ir.Value) -> list[ir.Value]:
    """Values that may be the result: those that the centred one becomes, where it is multiplied or divided."""
    found: list[ir.Value] = []
    for node in readers(centred):
        if node.graph is centred.graph and is_op(node, "Mul", "Div") and node.inputs[0] is not node.inputs[1]:
            for value in path_down(node.outputs[0]):
                if not is_op(value.producer(), "Mul", "Div", "Add"):
                    break
                found.append(value)
    return found


def _without_bias(value: ir.Value) -> tuple[ir.Value, NDArray[Any]]:
    """Split a constant that is added last from what it is added to."""
    node = value.producer()
    if is_op(node, "Add"):
        for source in node.inputs:
            bias = array(operand(node, source))
            if source is not None and bias is not None and bias.dtype == np.float32:
                return source, bias
    return value, np.zeros((), np.float32)


def _parts(product: ir.Value, centred: ir.Value) -> tuple[NDArray[Any], ir.Value] | None:
    """Split a product into its constants and its one divisor; None unless all else is the centred value, once."""
    scale: NDArray[Any] = np.ones((), np.float32)
    roots: list[ir.Value] = []
    others: list[ir.Value] = []
    waiting: list[tuple[ir.Value | None, bool]] = [(product, False)]
    while waiting:
        value, below = waiting.pop()
        node = maker(value)
        found = array(value)
        if value is None or (found is not None and (below or found.dtype != np.float32)):
            return None
        if found is not None:
            scale = scale * found
        elif value is not centred and is_op(node, "Mul"):
            waiting += [(source, below) for source in node.inputs]
        elif value is not centred and is_op(node, "Div"):
            waiting += [(node.inputs[0], below), (node.inputs[1], not below)]
        elif is_op(node, "Reciprocal"):
            waiting.append((node.inputs[0], not below))
        else:
            (roots if below else others).append(value)
    return (scale, roots[0]) if len(roots) == 1 and others == [centred] else None


def _epsilon(root: ir.Value, x: ir.Value, centred: ir.Value, axis: int) -> tuple[float, bool] | None:
    """Return what is added to the variance below the square root, and whether that is made of squares.

    None when it is no variance of x.
    """
    node = maker(root)
    added = maker(node.inputs[0]) if is_op(node, "Sqrt") else None
    if not is_op(added, "Add"):
        return None
    for variance in added.inputs:
        epsilon = number(operand(added, variance), len(dims(x) or ()))
        if epsilon is not None and epsilon > 0 and _is_variance(bare(variance), x, centred, axis):
            return epsilon, is_op(maker(bare(not_below(bare(variance), 0.0))), "Sub")
    return None


def _is_variance(value: ir.Value | None, x: ir.Value, centred: ir.Value, axis: int) -> bool:
    value = bare(not_below(value, 0.0))
    node = maker(value)
    if not is_op(node, "Sub"):
        return _is_mean_of_square(value, centred, axis)
    squares, square_of_mean = node.inputs
    mean = maker(square_of_mean)
    if mean is None or not is_square(square_of_mean, mean.inputs[0]) or mean_axis(mean.inputs[0], x) != axis:
        return False
    return _is_mean_of_square(squares, x, axis)


def _is_mean_of_square(value: ir.Value | None, of: ir.Value, axis: int) -> bool:
    """Whether a value is the mean of the squares of another one, over an axis."""
    return any(is_square(node.outputs[0], of) and mean_axis(value, node.outputs[0]) == axis for node in readers(of))


def _along(found: NDArray[Any], x: ir.Value, axis: int) -> NDArray[Any] | None:
    """A constant's element for each place of the axis, where it says nothing of other axes."""
    shape = dims(x) or ()
    size = shape[axis]
    if found.ndim > len(shape) or not isinstance(size, int):
        return None
    wide = found.reshape([1] * (len(shape) - found.ndim) + list(found.shape))
    if wide.size not in (1, wide.shape[axis]) or wide.shape[axis] not in (1, size):
        return None
    return np.ascontiguousarray(np.broadcast_to(wide.reshape(-1), (size,)), dtype=np.float32)


def _fuse(found: _Found) -> None:
    """Normalise over the last axis, which the operator wants, between two transpositions where it is another one."""
    end = maker(found.last)
    rank = len(dims(found.x) or ())
    order = [*range(rank)]
    order[found.axis], order[-1] = order[-1], order[found.axis]
    x = found.x
    if found.axis != rank - 1:
        x = insert(end, ir.node("Transpose", [x], {"perm": order}))
        x.type = found.x.type
    parts = {"scale": found.scale, "bias": found.bias}
    weights = [constant(end, f"norm_{name}", each) for name, each in parts.items()]
    new = insert(end, ir.node("LayerNormalization", [x, *weights], {"axis": -1, "epsilon": found.epsilon}))
    if found.axis != rank - 1:
        new.type = found.x.type
        new = insert(end, ir.node("Transpose", [new], {"perm": order}))
    replace(found.last, new)
