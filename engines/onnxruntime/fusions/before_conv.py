"""A factor and an offset in front of convolutions, one number for all channels, cost no pass over the tensor.

A factor goes into the weights that follow, and an offset into their bias where nothing is padded with zeros. Where
something is, both become a convolution of their own, channel by channel: between convolutions ONNX Runtime keeps
tensors in blocks of channels, and every other operator makes it bring them into order and back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from trtc.engines.onnxruntime.fusions.graph import (
    constant,
    drop_unread,
    insert,
    is_float,
    is_op,
    maker,
    number,
    operand,
    rank_of,
    readers,
)
from trtc.engines.onnxruntime.fusions.weights import set_weights, weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCK = 16
"""Channels come in blocks of 8 or 16, by the processor's vectors; other counts are not kept in blocks."""

_IN_BLOCKS = ("Conv", "HardSigmoid", "Mul", "Relu", "HardSwish", "Sigmoid")
"""Operators in front whose results may lie in blocks."""

_IMAGE_RANK = 4


def run(model: ir.Model) -> int:
    """Fold them; returns how many nodes are gone or merged."""
    found = 0
    for node in list(model.graph):
        if is_op(node, "Conv") and node.inputs[0] is not None:
            while _fold(node.inputs[0]):
                found += 1
    return found


def _fold(value: ir.Value) -> bool:
    """Fold the node that makes what convolutions read."""
    found = [(node, weights_of(node)) for node in readers(value)]
    convs = [(node, weights) for node, weights in found if weights is not None and node.inputs[0] is value]
    if len(convs) != len(found) or value.is_graph_output() or not is_float(value):
        return False
    step = _step(maker(value), rank_of(value))
    if step is None:
        return False
    source, factor, offset = step
    if offset and any(_pads(node) for node, _ in convs):
        node, weights = convs[0]
        return _as_conv(value, weights.kernel.shape[1] * node.attributes.get_int("group", 1))
    scaled = [(node, weights.after(factor, offset)) for node, weights in convs]
    if not all(weights.is_finite for _, weights in scaled):
        return False
    for node, weights in scaled:
        set_weights(node, weights)
        node.replace_input_with(0, source)
    drop_unread(value)
    return True


def _step(node: ir.Node | None, rank: int | None) -> tuple[ir.Value, float, float] | None:
    """Return what a node multiplies and adds one number to: its source, the factor, the offset."""
    if not is_op(node, "Mul", "Add"):
        return None
    for source in node.inputs:
        by = number(operand(node, source), rank)
        if source is not None and by is not None and np.isfinite(by) and rank_of(source) == rank:
            if node.op_type == "Add":
                return source, 1.0, by
            # A factor of 0 would hide infinities, which it turns into NaN.
            return (source, by, 0.0) if by else None
    return None


def _pads(conv: ir.Node) -> bool:
    """Whether a convolution reads zeros around its input."""
    automatic = conv.attributes.get_string("auto_pad", "NOTSET")
    pads: Sequence[int] = conv.attributes.get_ints("pads", ())
    return automatic not in ("NOTSET", "VALID") or any(pads)


def _as_conv(value: ir.Value, channels: int) -> bool:
    """Make one convolution, channel by channel, of an offset and of a factor in front of it."""
    rank = rank_of(value)
    step = _step(maker(value), rank)
    if step is None or rank != _IMAGE_RANK or channels % _BLOCK:
        return False
    source, factor, offset = step
    before = _step(maker(source), rank)
    if before is not None and before[2] == 0.0:
        source, factor, _ = before
    if not is_op(maker(source), *_IN_BLOCKS):
        return False
    end = maker(value)
    weights = constant(end, "factor", np.full((channels, 1, 1, 1), factor, np.float32))
    bias = constant(end, "offset", np.full(channels, offset, np.float32))
    merged = ir.node("Conv", [source, weights, bias], {"group": channels, "kernel_shape": (1, 1)})
    new = insert(end, merged, value)
    value.replace_all_uses_with(new)
    drop_unread(value)
    return True
