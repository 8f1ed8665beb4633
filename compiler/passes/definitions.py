"""Every value is defined once in its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import definitions, refuse, walk_graphs

if TYPE_CHECKING:
    import onnx


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse values with two definitions, or with none to name them by; nothing is changed.

    Libraries disagree about two definitions: one takes the last, another none. So neither is taken here.

    Raises:
        ModelError: all problems at once, each with both definitions.
    """
    problems: dict[str, None] = {}
    for graph in walk_graphs(model.graph):
        where = "" if graph is model.graph else f" (in subgraph {graph.name!r})"
        seen: dict[str, str] = {}
        for name, definer in definitions(graph):
            if not name:
                problems[f"an {definer.split()[0]} has an empty name{where}"] = None
            elif name in seen:
                problems[f"{name!r} is defined twice: by {seen[name]} and by {definer}{where}"] = None
            seen[name] = definer
    refuse(list(problems), "values must be defined once; export the model again:")
    return PassResult(model, changed=False)
