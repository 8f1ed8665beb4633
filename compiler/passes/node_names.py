"""Every node has a name of its own, so that every message can name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import FreshNames, listed, walk_nodes

if TYPE_CHECKING:
    import onnx


def run(model: onnx.ModelProto) -> PassResult:
    """Name nodes that have no name, and rename those whose name stands already, subgraphs included."""
    given = {node.name for node in walk_nodes(model.graph.node)}
    fresh = FreshNames(set(given))
    seen: set[str] = set()
    renamed: list[str] = []
    changed = False
    for i, node in enumerate(walk_nodes(model.graph.node)):
        if not node.name:
            node.name = fresh.make(f"{node.op_type}_{i}")
            changed = True
        elif node.name in seen:
            renamed.append(repr(node.name))
            node.name = fresh.make(node.name)
            changed = True
        else:
            seen.add(node.name)
    notes = (f"nodes shared a name, all but the first were renamed: {listed(renamed)}",) if renamed else ()
    return PassResult(model, changed, notes)
