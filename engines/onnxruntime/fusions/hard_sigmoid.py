"""Hard sigmoid and hard swish, written out: clip(a x + b, 0, h) / h, and that times x.

ONNX Runtime computes both inside of a convolution in front of them, and only under their names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx_ir as ir

from trtc.engines.onnxruntime.fusions.graph import (
    between,
    insert,
    is_closed,
    is_float,
    is_op,
    maker,
    number,
    path_down,
    replace,
)
from trtc.engines.onnxruntime.fusions.polynomial import Polynomial, polynomial

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLOSE = 1e-6
_SWISH, _SIGMOID = (1, 1), (0, 1)


def run(model: ir.Model) -> int:
    """Fuse them; returns how many."""
    found = 0
    for node in list(model.graph):
        if is_op(node, "Clip") and is_float(node.outputs[0]):
            found += _fuse(node)
    return found


def _fuse(clip: ir.Node) -> bool:
    high = _high(clip)
    if high is None:
        return False
    lines = list(_sources(clip))
    # The longest match: dividing may come after multiplying with x.
    for last in reversed(list(path_down(clip.outputs[0]))):
        for x, line in reversed(lines):
            term = _term(polynomial(last, x, clip.outputs[0]), high)
            if term is not None and is_closed(between(last, x), last):
                slope, offset = line[1, 0] / high, line.get((0, 0), 0.0) / high
                end = maker(last)
                new = insert(end, ir.node("HardSigmoid", [x], {"alpha": slope, "beta": offset}), last)
                if term == _SWISH:
                    new = insert(end, ir.node("Mul", [x, new]))
                replace(last, new)
                return True
    return False


def _term(found: Polynomial | None, high: float) -> tuple[int, int] | None:
    """Which of the two a polynomial of x and the clipped value is."""
    if found is None or len(found) != 1:
        return None
    ((term, factor),) = found.items()
    return term if term in (_SWISH, _SIGMOID) and math.isclose(factor * high, 1.0, rel_tol=_CLOSE) else None


def _high(clip: ir.Node) -> float | None:
    """The upper limit, where the lower one is 0."""
    low: float | None
    high: float | None
    if len(clip.inputs) == 1:
        low, high = clip.attributes.get_float("min", -math.inf), clip.attributes.get_float("max", math.inf)
    else:
        low, high = (number(value, 0) for value in (*clip.inputs, None, None)[1:3])
    return high if low == 0.0 and high is not None and 0.0 < high < math.inf else None


def _sources(clip: ir.Node) -> Iterator[tuple[ir.Value, Polynomial]]:
    """Yield the values that what is clipped is a line of, nearest first, with that line."""
    value = clip.inputs[0]
    for _ in range(3):
        node = maker(value)
        if not is_op(node, "Add", "Sub", "Mul", "Div"):
            return
        following = [source for source in node.inputs if source is not None and is_float(source) and _varies(source)]
        if len(following) != 1:
            return
        value = following[0]
        line = polynomial(clip.inputs[0], value)
        if line is not None and set(line) <= {(1, 0), (0, 0)} and line.get((1, 0)):
            yield value, line


def _varies(value: ir.Value) -> bool:
    return ir.convenience.get_const_tensor(value) is None
