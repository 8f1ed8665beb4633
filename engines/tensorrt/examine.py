"""What would not build, found before a long build: rules on the graph, and the library's own parser. Nothing is built.

The parser runs in a process of its own, as the builder does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnx import TensorProto, defs

from trtc.engines.build import NodeProblem, unheard
from trtc.engines.tensorrt.explain import failure_error
from trtc.engines.tensorrt.job import BuildJob
from trtc.engines.tensorrt.process import run_job
from trtc.engines.tensorrt.rules import Facts, all_nodes, node_problems

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtc.engines.target import Target

_OLDEST_ASKED = 20
"""Opsets from here on are asked about, to find the newest that the parser knows."""
_MISSING_TYPES = {
    TensorProto.DOUBLE: "it is double, and would be float in the engine; convert the model to float",
    **{
        number: f"the library has no {name} tensors; convert them before the model"
        for name, number in (
            ("string", TensorProto.STRING),
            ("int16", TensorProto.INT16),
            ("uint16", TensorProto.UINT16),
            ("uint32", TensorProto.UINT32),
            ("uint64", TensorProto.UINT64),
            ("complex64", TensorProto.COMPLEX64),
            ("complex128", TensorProto.COMPLEX128),
        )
    },
}
"""Element types that the library does not have, and what happens to them."""


def examine(model: Path, target: Target, folder: Path) -> tuple[NodeProblem, ...]:
    """Return everything that the target's builder would refuse, or compute otherwise without a word.

    Args:
        model: a canonical model; its external data lies beside it.
        target: to build for.
        folder: private; written to.

    Raises:
        EngineError: when the library crashes over the model.
        HostError: when it cannot be imported.
    """
    proto = onnx.load(model, load_external_data=False)
    used = {node.op_type for node in all_nodes(proto.graph) if node.domain in ("", "ai.onnx")}
    introduced = _introduced()
    job = BuildJob(library=target.backend, model=str(model), operators=tuple(sorted(used | introduced.keys())))
    outcome = run_job(job, folder / "examine.log", unheard)
    if outcome.failure is not None and outcome.failure.stage == "host":
        raise failure_error(target, outcome.failure)
    unsupported = frozenset(outcome.unsupported)
    opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=1)
    facts = Facts(
        library=target.backend,
        types=_types(proto),
        unsupported=unsupported & used,
        newest_opset=max((v for op, v in introduced.items() if op not in unsupported), default=_OLDEST_ASKED),
        opset=opset,
    )
    found = [*_tensor_problems(proto.graph), *node_problems(proto.graph, facts)]
    if outcome.failure is not None:
        known = {problem.node for problem in found}
        # The parser stops at the first tensor that it cannot take and names none: the rules named them all.
        told = outcome.failure.problems
        found += [p for p in told if (p.node not in known if p.node else not found)]
    return tuple(found)


def _introduced() -> dict[str, int]:
    """Return the operators that newer opsets brought, each with its opset."""
    first: dict[str, int] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            first[schema.name] = min(first.get(schema.name, schema.since_version), schema.since_version)
    return {name: version for name, version in first.items() if version >= _OLDEST_ASKED}


def _tensor_problems(graph: onnx.GraphProto) -> Iterator[NodeProblem]:
    """Yield inputs and outputs of types that the library does not have."""
    for kind, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            if not value.type.HasField("tensor_type"):
                yield NodeProblem("", f"{kind} {value.name!r}", "it is a sequence, a map or optional, and no tensor")
            elif why := _MISSING_TYPES.get(value.type.tensor_type.elem_type):
                yield NodeProblem("", f"{kind} {value.name!r}", why)


def _types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the element type of every tensor where inference finds it."""
    try:
        graph = onnx.shape_inference.infer_shapes(proto, data_prop=False).graph
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        graph = proto.graph
    found = {t.name: t.data_type for t in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        found[value.name] = value.type.tensor_type.elem_type
    return found
