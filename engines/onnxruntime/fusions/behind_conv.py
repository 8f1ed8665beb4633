"""Factors and offsets behind a convolution, one for each channel or one for all, go into its weights and its bias.

ONNX Runtime does this for shapes of ``[C, 1, 1]``, directly behind a convolution; exporters also write scalars, put a
Squeeze between, and transpose convolutions. A batch normalisation is a factor and an offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.onnxruntime.fusions.graph import array, axes_of, is_op, operand, rank_of, user
from trtc.engines.onnxruntime.fusions.weights import set_weights, weights_of

if TYPE_CHECKING:
    import onnx_ir as ir
    from numpy.typing import NDArray


def run(model: ir.Model) -> int:
    """Fold them; returns how many nodes are gone."""
    found = 0
    for node in list(model.graph):
        if is_op(node, "Conv", "ConvTranspose"):
            while fold(node):
                found += 1
    return found


def fold(conv: ir.Node, *, offsets_only: bool = False) -> bool:
    """Fold the node behind a convolution into its weights; returns whether one is gone."""
    weights = weights_of(conv)
    if weights is None:
        return False
    value = conv.outputs[0]
    node = user(value)
    if is_op(node, "Squeeze") and all(axis > 1 for axis in axes_of(node) or (0,)):
        value = node.outputs[0]
        node = user(value)
    step = _step(node, value, len(weights.bias))
    if step is None or (offsets_only and ((step[0] != 1).any() or weights.bias.any())):
        return False
    scaled = weights.then(*step)
    if node is None or not scaled.is_finite:
        return False
    set_weights(conv, scaled)
    _drop(node, value)
    return True


def _step(
    node: ir.Node | None, value: ir.Value, channels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Factor and offset for each channel, of a node that reads a convolution's result."""
    if is_op(node, "BatchNormalization"):
        return _normalisation(node, channels) if len(node.outputs) == 1 and node.inputs[0] is value else None
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


def _normalisation(node: ir.Node, channels: int) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Scale, bias, mean and variance of the training, as a factor and an offset."""
    parts = [array(value) for value in node.inputs[1:]]
    if node.attributes.get_int("training_mode", 0):
        return None
    found = [part.astype(np.float64) for part in parts if part is not None and part.dtype == np.float32]
    if len(found) != 4 or any(part.shape != (channels,) for part in found):  # noqa: PLR2004 (those four)
        return None
    scale, bias, mean, variance = found
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = scale / np.sqrt(variance + node.attributes.get_float("epsilon", 1e-5))
    if not np.isfinite(factor).all() or (factor == 0).any():
        return None
    return factor.astype(np.float32), (bias - mean * factor).astype(np.float32)


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
