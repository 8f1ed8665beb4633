"""What steers a Loop or an If must hold a value: ONNX Runtime 1.32 reads past an empty one, which ends the process."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import model_nodes, node_text, refuse, walk_graphs

if TYPE_CHECKING:
    import onnx

_STEERING = {"Loop": ("trip count", "condition"), "If": ("condition",)}


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse Loops and Ifs whose trip count or condition is a constant, or an input, without elements.

    Names are unique here, also across subgraphs. Nothing is changed.

    Raises:
        ModelError: all problems at once.
    """
    empty = _empty_values(model)
    problems = [
        f"{node_text(node)} has {name!r} as its {what}, which holds nothing; export the model again"
        for node in model_nodes(model)
        for name, what in zip(node.input, _STEERING.get(node.op_type, ()), strict=False)
        if name in empty
    ]
    refuse(problems, "loops and branches:")
    return PassResult(model, changed=False)


def _empty_values(model: onnx.ModelProto) -> set[str]:
    """Name the constants, and the inputs by their declared sizes, that have no elements."""
    found: set[str] = set()
    for graph in walk_graphs(model.graph):
        found |= {tensor.name for tensor in graph.initializer if not prod(tensor.dims)}
        found |= {value.name for value in graph.input if _declared_empty(value.type)}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute:
                constant = node.attribute[0]
                if not prod(constant.t.dims) or (
                    constant.name in {"value_ints", "value_floats"} and not (constant.ints or constant.floats)
                ):
                    found.update(node.output)
    return found


def _declared_empty(kind: onnx.TypeProto) -> bool:
    return any(dim.HasField("dim_value") and not dim.dim_value for dim in kind.tensor_type.shape.dim)
