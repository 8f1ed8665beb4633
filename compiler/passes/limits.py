"""Sizes that no real model reaches: refused before any work that grows with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import attribute_graphs, node_graphs
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx

MAX_NODES = 5_000_000
MAX_DEPTH = 30
"""Subgraphs inside subgraphs. Protobuf readers stop at 100 nested messages, and a subgraph takes three."""


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse graphs of more than 5 million nodes, or with more than 30 levels of subgraphs.

    Raises:
        ModelError: for either.
    """
    bodies = [model.graph.node]
    for function in model.functions:
        bodies += [function.node, *(graph.node for graph in attribute_graphs(function.attribute_proto))]
    count = 0
    for body in bodies:
        count += measure(body)[0]
        check_size(count, 0)
    return PassResult(model, changed=False)


def measure(nodes: Iterable[onnx.NodeProto]) -> tuple[int, int]:
    """Return how many nodes there are, subgraphs included, and how deep subgraphs nest.

    Raises:
        ModelError: as soon as either exceeds its limit.
    """
    count, deepest = 0, 0
    waiting = [(nodes, 0)]
    while waiting:
        body, depth = waiting.pop()
        deepest = max(deepest, depth)
        for node in body:
            count += 1
            waiting.extend((graph.node, depth + 1) for graph in node_graphs(node))
        check_size(count, deepest)
    return count, deepest


def check_size(node_count: int, depth: int) -> None:
    """Refuse what exceeds a limit.

    Raises:
        ModelError: when it does.
    """
    if node_count > MAX_NODES:
        raise ModelError(f"{node_count} nodes, but at most {MAX_NODES} are allowed; split or simplify the model")
    if depth > MAX_DEPTH:
        raise ModelError(f"subgraphs nest {depth} deep, but at most {MAX_DEPTH} levels are allowed; simplify the model")
