"""Softmax, written out: exp(x - max x) over the sum of that, along one axis."""

from __future__ import annotations

import math

import onnx_ir as ir

from trtc.engines.onnxruntime.fusions.graph import between, insert, is_closed, is_float, is_op, maker, opset, replace
from trtc.engines.onnxruntime.fusions.reduced import bare, is_kept, not_below, reduced_axis

_ONE_AXIS = 13
"""Version of ONNX's operators since which Softmax means one axis."""


def run(model: ir.Model) -> int:
    """Fuse them; returns how many."""
    found = 0
    for node in list(model.graph):
        if is_op(node, "Div") and is_float(node.outputs[0]) and opset(node) >= _ONE_AXIS:
            found += _fuse(node)
    return found


def _fuse(div: ir.Node) -> bool:
    powers, total = div.inputs
    exp = maker(powers)
    sub = maker(exp.inputs[0]) if is_op(exp, "Exp") else None
    if powers is None or not is_op(sub, "Sub") or sub.inputs[0] is None:
        return False
    x = sub.inputs[0]
    inner, most = bare(total), bare(sub.inputs[1])
    # A maximum with minus infinity changes nothing.
    most = bare(not_below(most, -math.inf))
    if inner is None or most is None:
        return False
    axis = reduced_axis(inner, powers, "ReduceSum")
    if axis is None or reduced_axis(most, x, "ReduceMax") != axis:
        return False
    if not (is_kept(sub.inputs[1], x, axis) and is_kept(total, powers, axis)):
        return False
    last = div.outputs[0]
    if not is_closed(between(last, x), last):
        return False
    replace(last, insert(div, ir.node("Softmax", [x], {"axis": axis})))
    return True
