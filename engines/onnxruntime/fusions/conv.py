"""Factors and offsets behind a convolution, one for each channel or one for all, go into its weights and its bias.

ONNX Runtime does this for shapes of ``[C, 1, 1]``, directly behind the convolution; exporters also write scalars, and
put a Squeeze between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.onnxruntime.fusions.graph import array, axes_of, constant, is_op, operand, rank_of, user

if TYPE_CHECKING:
    import onnx_ir as ir
    from numpy.typing import NDArray


def run(model: ir.Model) -> int:
    """Fold them; returns how many nodes are gone."""
    found = 0
    for node in list(model.graph):
        if is_op(node, "Conv"):
            while _fold(node):
                found += 1
    return found


def _fold(conv: ir.Node) -> bool:
    weights = array(conv.inputs[1])
    bias = array(conv.inputs[2]) if _has_bias(conv) else None
    if weights is None or weights.dtype != np.float32 or user(conv.inputs[1]) is not conv:
        return False
    if _has_bias(conv) and (bias is None or bias.dtype != np.float32):
        return False
    value = conv.outputs[0]
    node = user(value)
    if is_op(node, "Squeeze") and all(axis > 1 for axis in axes_of(node) or (0,)):
        value = node.outputs[0]
        node = user(value)
    step = _step(node, value, len(weights))
    if node is None or step is None:
        return False
    factor, offset = step
    old = np.zeros(len(weights), np.float32) if bias is None else bias
    wide = factor.reshape(-1, *[1] * (weights.ndim - 1))
    with np.errstate(over="ignore"):
        new_weights, new_bias = weights * wide, (old * factor + offset).astype(np.float32)
    if not (np.isfinite(new_weights).all() and np.isfinite(new_bias).all()):
        return False
    conv.replace_input_with(1, constant(conv, "fused/weights", new_weights.astype(np.float32)))
    if len(conv.inputs) < 3:  # noqa: PLR2004 (the bias is the third)
        conv.resize_inputs(3)
    conv.replace_input_with(2, constant(conv, "fused/bias", new_bias))
    _drop(node, value)
    return True


def _has_bias(conv: ir.Node) -> bool:
    return len(conv.inputs) > 2 and conv.inputs[2] is not None  # noqa: PLR2004


def _step(
    node: ir.Node | None, value: ir.Value, channels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Factor and offset for each channel, of a node that reads a convolution's result."""
    if not is_op(node, "Mul", "Div", "Add", "Sub") or (node.inputs[0] is node.inputs[1]):
        return None
    if is_op(node, "Div", "Sub") and node.inputs[0] is not value:
        return None
    by = _by_channel(operand(node, value), rank_of(value), channels)
    if by is None or not np.isfinite(by).all():
        return None
    ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    if is_op(node, "Add"):
        return ones, by
    if is_op(node, "Sub"):
        return ones, -by
    # A factor of 0 would hide infinities, which it turns into NaN.
    if (by == 0).any():
        return None
    return (by if is_op(node, "Mul") else np.float32(1) / by), zeros


def _by_channel(value: ir.Value | None, rank: int | None, channels: int) -> NDArray[np.float32] | None:
    """A constant's element for each channel, where it says nothing of other axes."""
    found = array(value)
    if found is None or rank is None or found.dtype != np.float32 or found.ndim > rank:
        return None
    if found.size == 1:
        return np.full(channels, found.reshape(()), np.float32)
    wide = found.reshape([1] * (rank - found.ndim) + list(found.shape))
    return wide.reshape(-1).astype(np.float32) if wide.shape[1] == wide.size == channels else None


def _drop(node: ir.Node, source: ir.Value) -> None:
    """Take a node out; its reader reads what it read."""
    out = node.outputs[0]
    name, is_output = out.name, out.is_graph_output()
    out.replace_all_uses_with(source, replace_graph_outputs=True)
    if node.graph is not None:
        node.graph.remove(node, safe=True)
    if is_output:
        source.name = name
