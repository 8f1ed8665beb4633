"""What a few elementwise nodes compute, as a polynomial of two values.

Exporters write the same formula with other orders, associations and constants. Two ways to write it have one
polynomial, so comparing polynomials finds all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from trtc.engines.onnxruntime.fusions.graph import array, is_op, number, rank_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx_ir as ir

Polynomial: TypeAlias = "dict[tuple[int, int], float]"
"""Coefficients by the powers of the first and of the second value."""

_MAX_DEGREE = 4
_MAX_DEPTH = 12
_CLOSE = 1e-5
"""Relative error up to which coefficients are one: float32 constants, and products of some."""


def polynomial(value: ir.Value | None, first: ir.Value, second: ir.Value | None = None) -> Polynomial | None:
    """Return what a value is of two others; None when it is no polynomial, or of other values as well."""
    return _of(value, {first: (1, 0)} | ({} if second is None else {second: (0, 1)}), rank_of(first), _MAX_DEPTH)


def is_close(found: Polynomial | None, wanted: Mapping[tuple[int, int], float]) -> bool:
    """Whether two polynomials have the same terms, with coefficients that differ by rounding."""
    if found is None or set(found) != set(wanted):
        return False
    return all(math.isclose(found[term], wanted[term], rel_tol=_CLOSE) for term in wanted)


def _of(
    value: ir.Value | None, known: dict[ir.Value, tuple[int, int]], rank: int | None, depth: int
) -> Polynomial | None:
    if value is None or depth == 0:
        return None
    if value in known:
        return {known[value]: 1.0}
    if array(value) is not None:
        found = number(value, rank)
        return None if found is None else {(0, 0): found}
    node = value.producer()
    if not is_op(node, "Add", "Sub", "Mul", "Div", "Pow", "Identity"):
        return None
    parts = [_of(source, known, rank, depth - 1) for source in node.inputs]
    if parts[0] is None or parts[-1] is None:
        return None
    return _combined(node.op_type, parts[0], parts[-1])


def _combined(operator: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
    if operator == "Identity":
        return left
    if operator in ("Add", "Sub"):
        sign = 1.0 if operator == "Add" else -1.0
        return {term: left.get(term, 0.0) + sign * right.get(term, 0.0) for term in left | right}
    if operator == "Mul":
        return _product(left, right)
    if set(right) != {(0, 0)}:
        return None
    by = right[0, 0]
    if operator == "Div":
        return {term: factor / by for term, factor in left.items()} if by else None
    power = {(0, 0): 1.0}
    for _ in range(int(by) if by in range(1, _MAX_DEGREE) else 0):
        power = _product(power, left) or {}
    return power if by in range(1, _MAX_DEGREE) and power else None


def _product(left: Polynomial, right: Polynomial) -> Polynomial | None:
    found: Polynomial = {}
    for (i, j), a in left.items():
        for (k, m), b in right.items():
            found[i + k, j + m] = found.get((i + k, j + m), 0.0) + a * b
    return found if all(i + j <= _MAX_DEGREE for i, j in found) else None
