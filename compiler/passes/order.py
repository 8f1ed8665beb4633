"""Nodes stand behind what they read; every name that is read exists."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import defined_names, node_graphs, node_text, node_uses
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx


def run(model: onnx.ModelProto) -> PassResult:
    """Sort the nodes of every graph; an order that is right already is kept.

    What a subgraph reads from outside counts as read by the node that holds it.

    Raises:
        ModelError: for a name that nothing defines, and for cycles, naming node and tensor.
    """
    moved = 0
    waiting: list[tuple[onnx.GraphProto, tuple[set[str], ...]]] = [(model.graph, ())]
    while waiting:
        graph, outer = waiting.pop()
        scopes = (*outer, defined_names(graph))
        reads = [node_uses(node) for node in graph.node]
        _check_reads(graph, reads, scopes)
        ranks = _ranks(graph, reads)
        if ranks is not None:
            following = iter(ranks)
            graph.node.sort(key=lambda _: next(following))
            moved += 1
        waiting.extend((sub, scopes) for node in graph.node for sub in node_graphs(node))
    notes = ("nodes were not in the order of their dependencies; they were sorted",) if moved else ()
    return PassResult(model, changed=bool(moved), notes=notes)


def _check_reads(graph: onnx.GraphProto, reads: Sequence[list[str]], scopes: Sequence[set[str]]) -> None:
    for node, names in zip(graph.node, reads, strict=True):
        for name in names:
            if not any(name in scope for scope in scopes):
                raise ModelError(
                    f"{node_text(node)} reads {name!r}, which is no input, initializer or output of any node; "
                    "export the model again"
                )
    for value in graph.output:
        if not any(value.name in scope for scope in scopes):
            raise ModelError(
                f"output {value.name!r} of graph {graph.name!r} is made by no node, and is no input or initializer; "
                "export the model again"
            )


def _ranks(graph: onnx.GraphProto, reads: Sequence[list[str]]) -> list[int] | None:
    """Return each node's new place, or None when all stand right.

    Of the nodes that are ready the one that stood first comes first, so the order changes as little as it can.
    """
    makers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    needs = [sorted({makers[name] for name in names if name in makers}) for names in reads]
    if all(not before or before[-1] < i for i, before in enumerate(needs)):
        return None
    readers: list[list[int]] = [[] for _ in needs]
    open_count = [len(before) for before in needs]
    for i, before in enumerate(needs):
        for maker in before:
            readers[maker].append(i)
    ready = [i for i, count in enumerate(open_count) if not count]
    ranks, placed = [-1] * len(needs), 0
    while ready:
        i = heapq.heappop(ready)
        ranks[i], placed = placed, placed + 1
        for reader in readers[i]:
            open_count[reader] -= 1
            if not open_count[reader]:
                heapq.heappush(ready, reader)
    if placed < len(needs):
        raise ModelError(_cycle_text(graph, needs, ranks))
    return ranks


def _cycle_text(graph: onnx.GraphProto, needs: Sequence[list[int]], ranks: Sequence[int]) -> str:
    """Follow unplaced makers until one comes up again, and tell that round."""
    at = next(i for i, rank in enumerate(ranks) if rank < 0)
    path: list[int] = []
    while at not in path:
        path.append(at)
        at = next(maker for maker in needs[at] if ranks[maker] < 0)
    round_ = path[path.index(at) :]
    reader, maker = round_[0], round_[1 % len(round_)]
    tensor = next(n for n in node_uses(graph.node[reader]) if n in graph.node[maker].output)
    names = " <- ".join(node_text(graph.node[i]) for i in [*round_[:5], at])
    return f"the graph has a cycle through tensor {tensor!r}: {names}; export the model again"
