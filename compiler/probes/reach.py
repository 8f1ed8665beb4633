"""Which inputs reach which output: a walk of the graph, subgraphs included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.compiler.onnx_types import subgraphs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import onnx

    from trtc.engines.signature import Signature


@dataclass(frozen=True, slots=True)
class Reach:
    """What flows where. It may name too much, never too little: every output of a node depends on all it reads.

    Attributes:
        inputs: for each graph output, the graph inputs whose values or sizes may reach it.
    """

    inputs: dict[str, frozenset[str]]

    def reached_from(self, names: Iterable[str]) -> frozenset[str]:
        """Return the outputs that any of these inputs may reach."""
        sources = frozenset(names)
        return frozenset(output for output, reaching in self.inputs.items() if reaching & sources)


def trace_reach(graph: onnx.GraphProto) -> Reach:
    """Follow every value from the inputs to the outputs.

    Args:
        graph: in any node order; subgraphs may read values of the graphs around them.
    """
    reaching: dict[str, frozenset[str]] = {value.name: frozenset([value.name]) for value in graph.input}
    reads = [(tuple(node.output), frozenset(_reads(node))) for node in graph.node]
    changed = True
    while changed:  # one turn for a sorted graph, and one that finds nothing new
        changed = False
        for outputs, names in reads:
            found = frozenset().union(*(reaching.get(name, frozenset()) for name in names))
            for output in outputs:
                if output and not found <= reaching.get(output, frozenset()):
                    reaching[output] = reaching.get(output, frozenset()) | found
                    changed = True
    return Reach({value.name: reaching.get(value.name, frozenset()) for value in graph.output})


def carriers(signature: Signature, symbol: str) -> tuple[str, ...]:
    """Name the inputs that have an axis which depends on ``symbol``."""
    return tuple(spec.name for spec in signature.inputs if symbol in spec.symbols)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Name what a node reads; for its subgraphs, what they take from outside (or merely may: names can repeat)."""
    yield from (name for name in node.input if name)
    for graph in subgraphs(node):
        yield from _free_names(graph)


def _free_names(graph: onnx.GraphProto) -> Iterator[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own.update(tensor.values.name for tensor in graph.sparse_initializer)
    own.update(name for node in graph.node for name in node.output)
    for node in graph.node:
        yield from (name for name in _reads(node) if name not in own)
    # A subgraph may hand a value of the outer graph straight on.
    yield from (value.name for value in graph.output if value.name not in own)
