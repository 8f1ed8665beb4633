"""Gelu by tanh, written out: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), in any order of its terms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx_ir as ir

from trtc.engines.onnxruntime.fusions.graph import (
    between,
    insert,
    is_closed,
    is_constant,
    is_float,
    is_op,
    maker,
    opset,
    path_down,
    replace,
)
from trtc.engines.onnxruntime.fusions.polynomial import is_close, polynomial

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSIDE = {(1, 0): math.sqrt(2 / math.pi), (3, 0): math.sqrt(2 / math.pi) * 0.044715}
_OUTSIDE = {(1, 0): 0.5, (1, 1): 0.5}
_HAS_GELU = 20
"""Version of ONNX's operators that has Gelu; before it, ONNX Runtime's own FastGelu computes the same."""


def run(model: ir.Model) -> int:
    """Fuse them; returns how many."""
    found = 0
    for node in list(model.graph):
        if is_op(node, "Tanh") and is_float(node.outputs[0]) and not is_constant(node.outputs[0]):
            found += _fuse(node)
    return found


def _fuse(tanh: ir.Node) -> bool:
    for x in _sources(tanh):
        if not is_close(polynomial(tanh.inputs[0], x), _INSIDE):
            continue
        for last in path_down(tanh.outputs[0]):
            nodes = between(last, x)
            if is_close(polynomial(last, x, tanh.outputs[0]), _OUTSIDE) and is_closed(nodes, last):
                end = maker(last)
                if opset(tanh) >= _HAS_GELU:
                    fused = ir.node("Gelu", [x], {"approximate": "tanh"})
                else:
                    fused = ir.node("FastGelu", [x], domain="com.microsoft")
                replace(last, insert(end, fused))
                return True
    return False


def _sources(tanh: ir.Node) -> Iterator[ir.Value]:
    """Yield the values that the argument of the tanh may be a polynomial of, nearest first."""
    waiting, seen = [tanh.inputs[0]], set()
    while waiting:
        value = waiting.pop(0)
        node = maker(value)
        if is_op(node, "Add", "Sub", "Mul", "Div", "Pow", "Identity"):
            for source in node.inputs:
                if source is not None and source not in seen and is_float(source):
                    seen.add(source)
                    waiting.append(source)
                    yield source
