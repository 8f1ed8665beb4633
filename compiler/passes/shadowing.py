"""A subgraph defines no name that it could also see outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import (
    FreshNames,
    definitions,
    listed,
    node_graphs,
    refuse,
    rename_in_graph,
    used_names,
)

if TYPE_CHECKING:
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
    waiting: list[tuple[onnx.GraphProto, tuple[Scope, ...]]] = [(model.graph, ())]
    while waiting:
        graph, outer = waiting.pop()
        places = _places(graph)
        for i, node in enumerate(graph.node):
            for sub in node_graphs(node):
                scopes = (*outer, Scope(places, i))
                later: dict[str, str] = {}
                for name, definer in definitions(sub):
                    found = next((scope for scope in reversed(scopes) if name in scope.places), None)
                    if found is None:
                        continue
                    if any(scope.sees(name) for scope in scopes):
                        where = f"in subgraph {sub.name!r}"
                        problems.append(f"{name!r} is defined by {found.places[name][1]} and, {where}, by {definer}")
                    elif name not in later:
                        later[name] = fresh.make(name)
                if later:
                    rename_in_graph(sub, later)
                    renamed += map(repr, later)
                waiting.append((sub, scopes))
    refuse(problems, "a subgraph must not define a name that it sees outside; export the model again:")
    notes = (
        (f"values of subgraphs had the name of an outer value and were renamed: {listed(renamed)}",) if renamed else ()
    )
    return PassResult(model, changed=bool(renamed), notes=notes)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names of one graph, as the node at ``position`` sees them.

    Attributes:
        places: name to (position of the node that makes it, -1 for inputs and initializers; who defines it).
        position: of the node that holds the subgraph.
    """

    places: dict[str, tuple[int, str]]
    position: int

    def sees(self, name: str) -> bool:
        """Whether a subgraph of that node may read ``name``."""
        return name in self.places and self.places[name][0] < self.position


def _places(graph: onnx.GraphProto) -> dict[str, tuple[int, str]]:
    if not any(node_graphs(node) for node in graph.node):
        return {}  # nothing inside asks
    made = {name: i for i, node in enumerate(graph.node) for name in node.output}
    return {name: (made.get(name, -1), definer) for name, definer in definitions(graph)}
