"""Every output is made by a node of its graph, for itself alone: an Identity stands where it was not.

Bound as it was, an output that is also an input came back as zeros from ONNX Runtime, and a subgraph's value that was
listed twice came back empty; neither was an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import helper

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import (
    FreshNames,
    defined_names,
    listed,
    node_graphs,
    rename_in_graph,
    used_names,
    walk_graphs,
)

if TYPE_CHECKING:
    import onnx


def run(model: onnx.ModelProto) -> PassResult:
    """Put an Identity before outputs that are inputs, initializers, constants, outer values, or listed twice.

    An output that is an input cannot keep its name inside the graph: it becomes ``<name>_output``, and callers of the
    importer learn its public name from ``Model.public_outputs``. All other outputs keep theirs; the value behind is
    renamed. A name that the main graph lists twice is answered once.
    """
    fresh = FreshNames(used_names(model))
    notes = _drop_repeats(model.graph)
    changed = bool(notes)
    inputs = {value.name for value in model.graph.input}
    fixed = {tensor.name for tensor in model.graph.initializer}
    fixed.update(n for node in model.graph.node if node.op_type == "Constant" and not node.domain for n in node.output)
    for output in model.graph.output:
        if output.name in inputs:
            passed = output.name
            output.name = fresh.make(f"{passed}_output")
            _identity(model.graph, passed, output.name)
            notes.append(f"output {passed!r} is an input as well; inside the graph it is called {output.name!r}")
        elif output.name in fixed:
            value = fresh.make(f"{output.name}_value")
            public = output.name
            rename_in_graph(model.graph, {public: value})
            output.name = public
            _identity(model.graph, value, public)
        else:
            continue
        changed = True
    for node in model.graph.node:
        for sub in node_graphs(node):
            for graph in walk_graphs(sub):
                changed = _own_outputs(graph, fresh) or changed
    return PassResult(model, changed, tuple(notes))


def _own_outputs(graph: onnx.GraphProto, fresh: FreshNames) -> bool:
    """Give a subgraph's outputs, which count by position, names of their own where they have none."""
    own = defined_names(graph)
    seen: set[str] = set()
    for output in graph.output:
        name = output.name
        if name in seen or name not in own:
            output.name = fresh.make(f"{name}_output")
            _identity(graph, name, output.name)
        seen.add(name)
    return len(own) < len(defined_names(graph))


def _drop_repeats(graph: onnx.GraphProto) -> list[str]:
    seen: set[str] = set()
    repeated: list[str] = []
    for i, output in enumerate(list(graph.output)):
        if output.name in seen:
            repeated.append(repr(output.name))
            del graph.output[i - len(repeated) + 1]
        seen.add(output.name)
    return [f"outputs were listed more than once, and are answered once: {listed(repeated)}"] if repeated else []


def _identity(graph: onnx.GraphProto, source: str, target: str) -> None:
    graph.node.append(helper.make_node("Identity", [source], [target], name=f"Identity_{target}"))
