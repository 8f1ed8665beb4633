"""Arithmetic and memory traffic of nodes, from the shapes that the engine's profiler saw."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtc.engines.profile import NodeRun

_PRODUCTS = frozenset(["MatMul", "FusedMatMul", "Gemm", "FusedGemm", "MatMulInteger", "DynamicQuantizeMatMul"])
_QUANTIZED_PRODUCTS = frozenset(["QLinearMatMul", "QGemm", "QLinearConv"])
_CONVOLUTIONS = frozenset(["Conv", "FusedConv", "ConvInteger", "NhwcFusedConv"])
_RECURRENT = frozenset(["LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"])
_MOVES = frozenset(
    (
        *("Cast", "Concat", "ConstantOfShape", "DequantizeLinear", "Expand", "Flatten", "Gather", "GatherElements"),
        *("GatherND", "Identity", "OneHot", "Pad", "QuantizeLinear", "Range", "ReorderInput", "ReorderOutput"),
        *("Reshape", "ScatterElements", "ScatterND", "Shape", "Slice", "Split", "Squeeze", "Tile", "Transpose"),
        *("Unsqueeze", "Where"),
    )
)
_LOOKUPS = frozenset(["Gather", "GatherElements", "GatherND", "Slice"])


@dataclass(frozen=True, slots=True)
class Work:
    """What a call does.

    Attributes:
        flop: multiplications and additions, each counted once; products, convolutions, recurrent layers and attention
            by their formulas, one for each output element of any other arithmetic, none for moving data.
        moved_bytes: what nodes read and write. Caches serve part of it, so it is an upper bound of memory traffic.
    """

    flop: int
    moved_bytes: int


def work_of(nodes: Iterable[NodeRun]) -> Work:
    """Add up the nodes of one call."""
    flop = moved = 0
    for node in nodes:
        flop += node_flop(node)
        moved += _moved_bytes(node)
    return Work(flop, moved)


def node_flop(node: NodeRun) -> int:
    """Return the multiplications and additions of one node; of a convolution only where its weights are told.

    ONNX Runtime repacks weights when it opens a model and does not tell their shapes then; a trace with
    ``whole_shapes`` does.
    """
    inputs, out = [t.shape for t in node.inputs], node.outputs[0].shape if node.outputs else ()
    count = prod(out) if node.outputs else 0
    if node.op in _MOVES or not inputs:
        return 0
    if node.op in _PRODUCTS and inputs[0]:
        return 2 * count * _inner(inputs[0], out)
    if node.op in _QUANTIZED_PRODUCTS and len(inputs) > 3:  # noqa: PLR2004 (value, scale, zero, weight)
        inner = prod(inputs[3][1:]) if node.op == "QLinearConv" else _inner(inputs[0], out)
        return 2 * count * inner
    if node.op in _CONVOLUTIONS and len(inputs) > 1:
        return 2 * count * prod(inputs[1][1:])
    if node.op == "ConvTranspose" and len(inputs) > 1:
        return 2 * prod(inputs[0]) * prod(inputs[1][1:])
    if node.op in _RECURRENT and len(inputs) > 2 and len(inputs[0]) == 3:  # noqa: PLR2004 (X, W, R; X has rank 3)
        return 2 * inputs[0][0] * inputs[0][1] * (prod(inputs[1]) + prod(inputs[2]))
    if node.op == "Attention" and len(inputs) > 1 and len(inputs[0]) == len(out) == 3:  # noqa: PLR2004 (rows, steps, width)
        rows, steps, width = inputs[0]
        return 2 * rows * steps * width * inputs[1][-1] + 4 * rows * steps * steps * out[-1]
    if node.op == "MultiHeadAttention" and len(inputs) > 1 and len(inputs[0]) == len(inputs[1]) == 3:  # noqa: PLR2004 (as above)
        rows, steps, width = inputs[0]
        return 4 * rows * steps * inputs[1][1] * width
    return count


def _inner(left: tuple[int, ...], out: tuple[int, ...]) -> int:
    """The axis that a product sums over: the last of its left side, or the one before where that is transposed."""
    if len(left) < 2 or len(out) < 2 or left[-2] == out[-2]:  # noqa: PLR2004 (a vector has one)
        return left[-1]
    return left[-2] if left[-1] == out[-2] else left[-1]


def _moved_bytes(node: NodeRun) -> int:
    # A lookup reads what it returns, not its whole table.
    read = node.written_bytes if node.op in _LOOKUPS else node.read_bytes + node.weight_bytes
    return read + node.written_bytes
