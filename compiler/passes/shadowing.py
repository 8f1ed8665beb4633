"""A subgraph defines no name that it could also see outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import (
    FreshNames,
    defined_names,
    definitions,
    listed,
    node_graphs,
    refuse,
    rename_in_graph,
    used_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse names of a subgraph that hide a visible outer one; rename those that only equal a later one.

    Nodes are sorted already. ONNX forbids the first. The second is allowed and common (a branch whose result is called
    like the If's own output), but no later pass should have to know which of the two is meant.

    Raises:
        ModelError: all hidden names at once, each with both definitions.
    """
    fresh = FreshNames(used_names(model))
    problems: list[str] = []
    renamed: list[str] = []
    waiting: list[tuple[onnx.GraphProto, dict[str, str]]] = [(model.graph, {})]
    while waiting:
        graph, outer = waiting.pop()
        for sub, visible in _subgraphs(graph, outer):
            hidden = [(name, definer) for name, definer in definitions(sub) if name in visible]
            problems += [
                f"{name!r} is defined by {visible[name]} and, in subgraph {sub.name!r}, again by {definer}"
                for name, definer in hidden
            ]
            later = sorted((defined_names(sub) & defined_names(graph)) - visible.keys())
            if later and not hidden:
                rename_in_graph(sub, {name: fresh.make(name) for name in later})
                renamed += map(repr, later)
            waiting.append((sub, visible))
    refuse(problems, "a subgraph must not define a name that it sees outside; export the model again:")
    notes = (f"values of subgraphs had the name of an outer value and were renamed: {listed(renamed)}",) if renamed else ()
    return PassResult(model, changed=bool(renamed), notes=notes)


def _subgraphs(
    graph: onnx.GraphProto, outer: dict[str, str]
) -> Iterator[tuple[onnx.GraphProto, dict[str, str]]]:
    """Yield each subgraph with what it sees: name to definer."""
    visible = dict(outer)
    made = {name for node in graph.node for name in node.output}
    visible.update((name, definer) for name, definer in definitions(graph) if name not in made)
    for node in graph.node:
        for sub in node_graphs(node):
            yield sub, dict(visible)
        visible.update((name, f"node {node.name!r} ({node.op_type})") for name in node.output if name)
