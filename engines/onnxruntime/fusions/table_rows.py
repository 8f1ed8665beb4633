"""What follows a look-up element by element is done to the table, once.

``Gelu(Gather(table, ids) + bias)`` becomes ``Gather(Gelu(table + bias), ids)``, whose inside ONNX Runtime computes when
it optimises. The very operators that ran on the rows run on the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from trtc.engines.onnxruntime.fusions.graph import (
    array,
    constant,
    graph_of,
    insert_behind,
    is_float,
    is_op,
    rank_of,
    user,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# fmt: off
_BY_ELEMENT = (
    "Abs", "Add", "Clip", "Cos", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Max",
    "Min", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sin", "Softplus", "Sqrt", "Sub", "Tanh",
)
# fmt: on


def run(model: ir.Model) -> int:
    """Move them; returns how many look-ups."""
    return sum(_move(node) for node in list(model.graph) if is_op(node, "Gather"))


def _move(gather: ir.Node) -> bool:
    source, rows = gather.inputs[0], gather.outputs[0]
    table = array(source)
    if table is None or table.ndim != 2 or gather.attributes.get_int("axis", 0) != 0:  # noqa: PLR2004
        return False
    # A table that others read as well would be kept twice.
    if source is None or table.dtype != np.float32 or user(source) is not gather:
        return False
    region = _region(gather, table.shape[1])
    made = {rows, *(node.outputs[0] for node in region)}
    results = [value for value in made if value.is_graph_output() or any(n not in region for n in value.consumers())]
    if len(results) != 1 or results[0] is rows:
        return False
    for node in region:
        for i, value in enumerate(node.inputs):
            if value is rows:
                node.replace_input_with(i, source)
            elif value is not None and value not in made:
                node.replace_input_with(i, _flat(node, value))
        node.outputs[0].shape = source.shape
    _look_up(gather, results[0], [(node, i) for node, i in results[0].uses() if node not in region])
    return True


def _look_up(gather: ir.Node, table: ir.Value, readers: list[tuple[ir.Node, int]]) -> None:
    """Look up in the finished table, for those that read what it was made of."""
    behind = ir.node("Gather", [table, gather.inputs[1]], {"axis": 0})
    rows = behind.outputs[0]
    rows.shape, rows.type = gather.outputs[0].shape, gather.outputs[0].type
    # The ids stand before the old look-up, and that before everything made of it.
    insert_behind(table, behind)
    for reader, i in readers:
        reader.replace_input_with(i, rows)
    if table.is_graph_output():
        outputs = graph_of(gather).outputs
        outputs[outputs.index(table)] = rows
        table.name, rows.name = f"{table.name}/rows", table.name


def _region(gather: ir.Node, width: int) -> list[ir.Node]:
    """Nodes, in order, whose result for a row follows from that row alone and has its width."""
    made = {gather.outputs[0]}
    rank = rank_of(gather.outputs[0]) or 1
    found = []
    for node in graph_of(gather):
        if (
            is_op(node, *_BY_ELEMENT)
            and len(node.outputs) == 1
            and is_float(node.outputs[0])
            and any(value in made for value in node.inputs)
            and all(value is None or value in made or _beside_rows(value, width, rank) for value in node.inputs)
        ):
            found.append(node)
            made.add(node.outputs[0])
    return found


def _beside_rows(value: ir.Value, width: int, rank: int) -> bool:
    """Whether a constant has one element, or one for each column, and leaves the rows their rank."""
    found = array(value)
    if found is None or found.ndim > rank:
        return False
    return found.size == 1 or found.size == width == found.shape[-1]


def _flat(node: ir.Node, value: ir.Value) -> ir.Value:
    """The constant without the axes of 1 in front: the table has no axes there."""
    found: NDArray[Any] | None = array(value)
    if found is None or found.ndim <= 1:
        return value
    return constant(node, "flat", found.reshape(found.shape[-1:]))
