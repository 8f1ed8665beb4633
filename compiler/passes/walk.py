"""Walking a graph with all its subgraphs, and renaming values inside their scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import onnx

STANDARD_DOMAIN = ""
"""The domain of ONNX's own operators; ``ai.onnx`` is another spelling of it."""


def plain_domain(domain: str) -> str:
    """Return one spelling for the standard domain."""
    return STANDARD_DOMAIN if domain == "ai.onnx" else domain


def node_text(node: onnx.NodeProto) -> str:
    """Name a node for people: by its name, or by what it makes."""
    if node.name:
        return f"node {node.name!r} ({node.op_type})"
    return f"the {node.op_type or 'untyped'} node that makes {', '.join(map(repr, node.output)) or 'nothing'}"


def node_graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the subgraphs that a node holds directly."""
    return attribute_graphs(node.attribute) if node.attribute else []


def attribute_graphs(attributes: Iterable[onnx.AttributeProto]) -> list[onnx.GraphProto]:
    """Return the graphs that attributes hold, whatever type they claim to have."""
    graphs: list[onnx.GraphProto] = []
    for attribute in attributes:
        if attribute.HasField("g"):
            graphs.append(attribute.g)
        graphs.extend(attribute.graphs)
    return graphs


def walk_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and every subgraph inside it, parents first."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield current
        inner = [sub for node in current.node for sub in node_graphs(node)]
        waiting.extend(reversed(inner))


def model_graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph, and every subgraph of it and of the local functions."""
    yield from walk_graphs(model.graph)
    for function in model.functions:
        for graph in function_graphs(function):
            yield from walk_graphs(graph)


def function_graphs(function: onnx.FunctionProto) -> list[onnx.GraphProto]:
    """Return the subgraphs that a local function holds directly."""
    inner = [graph for node in function.node for graph in node_graphs(node)]
    return attribute_graphs(function.attribute_proto) + inner


def model_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of the graph, its subgraphs, and the local functions."""
    for graph in model_graphs(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def walk_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and every node in their subgraphs."""
    for node in nodes:
        yield node
        for graph in node_graphs(node):
            for inner in walk_graphs(graph):
                yield from inner.node


def definitions(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """Yield each name that this graph itself defines, and who defines it; subgraphs are other scopes."""
    inputs = [value.name for value in graph.input]
    for name in inputs:
        yield name, f"input {name!r}"
    defaults = set(inputs)
    for tensor in graph.initializer:
        if tensor.name in defaults:
            defaults.discard(tensor.name)  # an input with a default value: one tensor, listed twice
        else:
            yield tensor.name, f"initializer {tensor.name!r}"
    for node in graph.node:
        for name in node.output:
            if name:
                yield name, node_text(node)


def defined_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names that this graph itself defines."""
    names = {item.name for items in (graph.input, graph.initializer) for item in items}
    for node in graph.node:
        names.update(node.output)
    names.discard("")
    return names


def node_uses(node: onnx.NodeProto) -> list[str]:
    """Return the names that a node reads, also from inside its subgraphs, in a fixed order."""
    uses = [name for name in node.input if name]
    for graph in node_graphs(node):
        uses.extend(outer_uses(graph))
    return uses


def outer_uses(graph: onnx.GraphProto) -> list[str]:
    """Return the names that a subgraph takes from the scopes around it, in a fixed order."""
    own = defined_names(graph)
    uses: dict[str, None] = {}
    for node in graph.node:
        uses.update(dict.fromkeys(node_uses(node)))
    uses.update(dict.fromkeys(value.name for value in graph.output))
    return [name for name in uses if name and name not in own]


def used_names(model: onnx.ModelProto) -> set[str]:
    """Return every value name that stands anywhere in the graph and its subgraphs."""
    names: set[str] = set()
    for graph in walk_graphs(model.graph):
        names.update(defined_names(graph))
        names.update(value.name for value in graph.output)
        for node in graph.node:
            names.update(node.input)
    return names


def rename_in_nodes(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> None:
    """Rename values that nodes read or make, also in their subgraphs unless defined anew there."""
    for node in nodes:
        for values in (node.input, node.output):
            for i, name in enumerate(values):
                if name in names:
                    values[i] = names[name]
        for graph in node_graphs(node):
            own = defined_names(graph)
            rest = {old: new for old, new in names.items() if old not in own}
            if rest:
                rename_in_graph(graph, rest)


def rename_in_graph(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename values everywhere in a graph, its interface included."""
    rename_in_nodes(graph.node, names)
    for items in (graph.input, graph.output, graph.initializer):
        for item in items:
            if item.name in names:
                item.name = names[item.name]


class FreshNames:
    """Makes names that stand nowhere yet.

    Args:
        taken: the names that exist; owned by this object afterwards.
    """

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._next: dict[str, int] = {}

    def make(self, wish: str) -> str:
        """Return ``wish``, with a number behind it where it is taken, and remember it as taken."""
        name, number = wish, self._next.get(wish, 2)
        while not name or name in self._taken:
            name, number = f"{wish}_{number}", number + 1
        self._next[wish] = number
        self._taken.add(name)
        return name


def listed(items: list[str], limit: int = 10) -> str:
    """Join items for a message: the first few, and how many more there are."""
    rest = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {rest} more" if rest > 0 else "")


def refuse(problems: list[str], headline: str) -> None:
    """Raise one ModelError for all problems; do nothing when there are none.

    Raises:
        ModelError: when ``problems`` is not empty.
    """
    if problems:
        raise ModelError("\n  ".join([headline, *problems]) if len(problems) > 1 else f"{headline} {problems[0]}")
