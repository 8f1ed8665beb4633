"""A one-hot row times a constant matrix is a row of that matrix.

``MatMul(Cast(Equal(ids[..., 1], [0 .. K-1])), table[K, D])`` becomes ``Gather`` from the table with a row of zeros
behind it. An id outside the table has a one-hot row of zeros: it is limited to -1 below and K above, and both name that
last row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from trtc.engines.onnxruntime.fusions.graph import (
    array,
    constant,
    dims,
    insert,
    is_float,
    is_op,
    maker,
    operand,
    opset,
    rank_of,
    replace,
    user,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLIPS_INTEGERS = 13
"""Clip takes integers since 12; Squeeze takes its axes as an input since 13."""


def run(model: ir.Model) -> int:
    """Fuse them; returns how many."""
    found = 0
    for node in model.graph:
        if is_op(node, "MatMul") and opset(node) >= _CLIPS_INTEGERS:
            table = _table(node)
            ids = None if table is None else _ids(node, len(table))
            if table is not None and ids is not None:
                _fuse(node, ids, table)
                found += 1
    return found


def _table(node: ir.Node) -> NDArray[Any] | None:
    """A finite matrix: zeros of a one-hot row times infinity would be NaN."""
    table = array(node.inputs[1])
    if table is None or table.ndim != 2 or table.dtype != np.float32 or not np.isfinite(table).all():  # noqa: PLR2004
        return None
    return table


def _ids(node: ir.Node, count: int) -> ir.Value | None:
    """The ids of the one-hot rows: int32 or int64, with a last axis of 1."""
    hot = node.inputs[0]
    cast = maker(hot)
    if not is_op(cast, "Cast") or user(hot) is not node or not is_float(hot):
        return None
    equal = maker(cast.inputs[0])
    if not is_op(equal, "Equal") or user(equal.outputs[0]) is not cast:
        return None
    for ids in equal.inputs:
        choices, shape, rank = array(operand(equal, ids)), dims(ids), rank_of(equal.outputs[0])
        if (
            choices is not None
            and shape
            and shape[-1] == 1
            and len(shape) == rank
            and choices.size == count == choices.shape[-1:][0]
            and choices.dtype in (np.int32, np.int64)
            and np.array_equal(choices.reshape(-1), np.arange(count))
        ):
            return ids
    return None


def _fuse(node: ir.Node, ids: ir.Value, table: NDArray[Any]) -> None:
    kind = np.int32 if ids.dtype == ir.DataType.INT32 else np.int64
    limits = [constant(node, f"id_{name}", np.array(to, kind)) for name, to in (("min", -1), ("max", len(table)))]
    # Adding 0 turns -0 into 0, as the sum over a row does.
    rows = constant(node, "rows", np.concatenate([table + np.float32(0), np.zeros_like(table[:1])]))
    inside = insert(node, ir.node("Clip", [ids, *limits]), ids)
    last = constant(node, "last_axis", np.array([-1], np.int64))
    flat = insert(node, ir.node("Squeeze", [inside, last]))
    flat.type = ids.type
    replace(node.outputs[0], insert(node, ir.node("Gather", [rows, flat], {"axis": 0})))
