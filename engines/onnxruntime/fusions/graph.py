"""What fusions ask of a graph: constants, shapes that are certain, and who uses a value.

Shapes come from inference that starts at the inputs alone; what a model declares of values inside is not believed. An
axis of unknown size is None, and equals nothing; a symbol equals itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

Dims: TypeAlias = "tuple[int | str | None, ...]"

MAX_PATH = 12
"""Nodes that a pattern may span: searches end there."""


def infer(model: ir.Model, known: Mapping[ir.Value, Dims] | None = None) -> None:
    """Find all shapes again, from the inputs on.

    Args:
        model: whose shapes are set.
        known: shapes that inference would miss.
    """
    forget(model)
    for value, shape in (known or {}).items():
        value.shape = ir.Shape(shape)
    ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)


def forget(model: ir.Model) -> None:
    """Forget the shapes of everything that nodes make."""
    for node in model.graph.all_nodes():
        for value in node.outputs:
            value.shape = None


def array(value: ir.Value | None) -> NDArray[Any] | None:
    """Return the elements of a constant; None for a value that a run decides."""
    if value is None or value.is_graph_input():
        return None
    found = ir.convenience.get_const_tensor(value)
    return None if found is None else found.numpy()


def number(value: ir.Value | None, rank: int | None) -> float | None:
    """Return a float32 constant of one element that leaves a tensor of this rank its shape; else None."""
    found = array(value)
    if found is None or found.dtype != np.float32 or found.size != 1 or found.ndim > (rank or 0):
        return None
    return float(found.reshape(()))


def dims(value: ir.Value | None) -> Dims | None:
    """Return the size of each axis: an int, a symbol, or None; None where the rank is unknown."""
    if value is None or value.shape is None:
        return None
    return tuple(d if isinstance(d, int) else d.value for d in value.shape)


def rank_of(value: ir.Value | None) -> int | None:
    """Return the number of axes, where it is known."""
    found = dims(value)
    return None if found is None else len(found)


def same_dims(left: Dims | None, right: Dims | None) -> bool:
    """Whether two shapes are certain to be equal."""
    return left is not None and left == right and None not in left


def is_float(value: ir.Value | None) -> bool:
    """Whether a value is certain to be float32."""
    return value is not None and value.dtype == ir.DataType.FLOAT


def is_op(node: ir.Node | None, *names: str) -> TypeGuard[ir.Node]:
    """Whether a node is one of these operators of ONNX itself."""
    return node is not None and node.domain in ("", "ai.onnx") and node.op_type in names


def opset(node: ir.Node) -> int:
    """Return the version of ONNX's operators that a node's graph imports."""
    graph = node.graph
    return 0 if graph is None else graph.opset_imports.get("", 0)


def user(value: ir.Value | None) -> ir.Node | None:
    """Return the one node that reads a value, once or several times.

    None where there are more, where one is in a branch or a loop, and for an output of the graph.
    """
    if value is None or value.is_graph_output():
        return None
    nodes = readers(value)
    return nodes[0] if len(nodes) == 1 and nodes[0].graph is value.graph else None


def readers(value: ir.Value) -> list[ir.Node]:
    """Return the nodes that read a value, each once, in a fixed order."""
    return list(dict.fromkeys(node for node, _ in value.uses()))


def is_closed(nodes: Collection[ir.Node], last: ir.Value) -> bool:
    """Whether nothing outside reads what these nodes make, but for one value."""
    return all(
        value is last or (not value.is_graph_output() and all(other in nodes for other in value.consumers()))
        for node in nodes
        for value in node.outputs
    )


_SHAPES_BEHIND = frozenset(
    ["Reshape", "Expand", "Squeeze", "Unsqueeze", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"]
)
"""Operators whose inputs behind the first are axes and shapes."""


def between(last: ir.Value, first: ir.Value) -> set[ir.Node]:
    """Return the nodes that make a value out of another, without constants, and without what computes shapes."""
    found: set[ir.Node] = set()
    waiting: list[ir.Value | None] = [last]
    while waiting:
        value = waiting.pop()
        node = None if value is None else value.producer()
        if node is None or value is first or node in found or is_op(node, "Constant"):
            continue
        found.add(node)
        waiting += node.inputs[:1] if is_op(node, *_SHAPES_BEHIND) else node.inputs
    return found


def is_constant(value: ir.Value | None) -> bool:
    """Whether no run decides a value: ONNX Runtime computes it when it optimises, from ONNX's own operators only."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if one is None or one in seen or array(one) is not None:
            continue
        node = one.producer()
        if node is None or not node.inputs:
            return False
        seen.add(one)
        waiting += node.inputs
    return True


def path_down(value: ir.Value) -> Iterator[ir.Value]:
    """Yield a value and those made of it, as long as one node reads each and makes one."""
    for _ in range(MAX_PATH):
        yield value
        node = user(value)
        if node is None or len(node.outputs) != 1:
            return
        value = node.outputs[0]


def operand(node: ir.Node, value: ir.Value | None) -> ir.Value | None:
    """Return the other input of a node with two."""
    left, right = node.inputs
    return right if left is value else left


def axes_of(node: ir.Node, place: int = 1) -> tuple[int, ...] | None:
    """Return the axes that a node names, by attribute or by a constant input; None where it names none or may vary."""
    attribute = node.attributes.get("axes")
    if attribute is not None:
        return tuple(attribute.as_ints())
    found = array(node.inputs[place]) if len(node.inputs) > place else None
    return None if found is None else tuple(int(axis) for axis in found.reshape(-1))


def maker(value: ir.Value | None) -> ir.Node | None:
    """Return the node that makes a value; None for what no node makes."""
    return None if value is None else value.producer()


def reserve_names(graph: ir.Graph) -> None:
    """Choose what names of new values begin with, so that none of them stands anywhere yet."""
    taken = {value.name or "" for node in graph.all_nodes() for value in node.outputs}
    for each in (graph, *graph.subgraphs()):
        taken |= {value.name or "" for value in each.inputs} | set(each.initializers)
    prefix = "fused"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    graph.meta[_PREFIX], graph.meta[_COUNT] = prefix, 0


_PREFIX, _COUNT = "trtc.prefix", "trtc.count"


def _fresh(graph: ir.Graph, wish: str) -> str:
    graph.meta[_COUNT] += 1
    return f"{graph.meta[_PREFIX]}/{wish}_{graph.meta[_COUNT]}"


def constant(node: ir.Node | None, wish: str, data: NDArray[Any]) -> ir.Value:
    """Put a new constant into the graph of a node."""
    graph = graph_of(node)
    name = _fresh(graph, wish)
    value = ir.val(name, const_value=ir.tensor(np.ascontiguousarray(data), name=name))
    graph.register_initializer(value)
    return value


def insert(before: ir.Node | None, node: ir.Node, like: ir.Value | None = None) -> ir.Value:
    """Put a node in front of another; its output gets the type and the shape of ``like``.

    Args:
        before: never None: that stands here because a value need not have a maker.
        node: new.
        like: what the output is like; None where its shape is another one.

    Returns:
        Its output.
    """
    if before is None:
        raise ValueError(f"there is no place for a new {node.op_type}: an input or a constant has no maker")
    graph = graph_of(before)
    out = node.outputs[0]
    node.name = out.name = _fresh(graph, node.op_type)
    graph.insert_before(before, node)
    if like is not None:
        out.type, out.shape = like.type, like.shape
    return out


def insert_behind(value: ir.Value, node: ir.Node) -> None:
    """Put a node right behind the one that makes a value."""
    end = maker(value)
    graph = graph_of(end)
    node.name = node.outputs[0].name = _fresh(graph, node.op_type)
    if end is not None:
        graph.insert_after(end, node)


def graph_of(node: ir.Node | None) -> ir.Graph:
    """Return the graph that a node stands in."""
    if node is None or not isinstance(node.graph, ir.Graph):
        raise TypeError("a value without a maker, or a node of a function, is in no graph")
    return node.graph


def drop_unread(value: ir.Value | None) -> None:
    """Remove the node that makes a value when nobody reads it any more, and so on upwards.

    Passes that ask who reads a value would else take such nodes for readers.
    """
    node = maker(value)
    if node is None or any(out.uses() or out.is_graph_output() for out in node.outputs):
        return
    sources = list(node.inputs)
    graph_of(node).remove(node, safe=True)
    for source in sources:
        drop_unread(source)


def replace(old: ir.Value, new: ir.Value) -> None:
    """Let a new value take the place, and the name, of an old one; what only the old one needed is removed later."""
    name = old.name
    new.type, new.shape = old.type, old.shape
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    old.name = f"{name}/before"
    new.name = name
