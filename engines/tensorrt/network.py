"""From the model file to the library's network: every node must parse, every input and output must be what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.engines.build import NodeProblem
from trtc.engines.tensorrt.job import Failure
from trtc.engines.tensorrt.log import error_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.tensorrt.job import BuildJob, TensorFact

ONNX_TYPES = {
    "FLOAT": "float",
    "HALF": "float16",
    "BF16": "bfloat16",
    "FP8": "float8e4m3fn",
    "INT64": "int64",
    "INT32": "int32",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
    "INT4": "int4",
    "FP4": "float4e2m1",
    "E8M0": "float8e8m0",
}
"""The library's element types as ONNX writes them."""


def parse(parser: Any, logger: Any, model: str) -> Failure | None:
    """Fill the parser's network from a model file.

    Args:
        parser: of an empty network.
        logger: a ``KeptLog``.
        model: path of the file; external data lies beside it.

    Returns:
        Why it does not parse, node by node; None when it does.
    """
    if parser.parse_from_file(model):
        return None
    found = [parser.get_error(i) for i in range(parser.num_errors)]
    problems = [NodeProblem(_name(e), e.node_operator() or "", _telling(e.desc())) for e in found]
    return Failure("parse", tuple(problems) or tuple(NodeProblem("", "", text) for text in error_texts(logger.lines)))


def _name(error: Any) -> str:
    return error.node_name() or (f"number {error.node()}" if error.node() >= 0 else "")


def _telling(text: str) -> str:
    """Some checks of the parser say no more than that they failed."""
    lines = [line for line in text.strip().splitlines() if "cudaError 35" not in line]
    said = " ".join(lines)
    return "the parser has no support for this operator" if said in ("", "false") else said


def unlike_tensors(network: Any, job: BuildJob) -> Failure | None:
    """Compare the inputs and outputs with those of the model.

    Returns:
        What differs: missing ones, other types (double becomes float without a word), other ranks or sizes.
    """
    inputs = {t.name: t for t in (network.get_input(i) for i in range(network.num_inputs))}
    outputs = {t.name: t for t in (network.get_output(i) for i in range(network.num_outputs))}
    problems = [*_unlike("input", job.inputs, inputs), *_unlike("output", job.outputs, outputs)]
    return Failure("tensors", tuple(problems)) if problems else None


def _unlike(kind: str, wanted: Sequence[TensorFact], got: dict[str, Any]) -> list[NodeProblem]:
    problems = []
    for fact in wanted:
        tensor = got.get(fact.name)
        message = "the library makes it a constant of the engine" if tensor is None else _differs(fact, tensor)
        if message:
            problems.append(NodeProblem("", f"{kind} {fact.name!r}", message))
    names = {fact.name for fact in wanted}
    problems += [NodeProblem("", f"{kind} {name!r}", "the model has none") for name in got if name not in names]
    return problems


def _differs(fact: TensorFact, tensor: Any) -> str:
    dtype = ONNX_TYPES.get(tensor.dtype.name, tensor.dtype.name)
    if dtype != fact.dtype:
        return f"it is {fact.dtype} in the model, and would be {dtype} in the engine"
    shape = _shape(tensor)
    if shape is None or fact.shape is None:
        return ""
    if len(shape) != len(fact.shape):
        return f"it has {len(fact.shape)} axes in the model, and would have {len(shape)} in the engine"
    if any(a >= 0 and b >= 0 and a != b for a, b in zip(fact.shape, shape, strict=True)):
        return f"it has the shape {list(fact.shape)} in the model, and would have {list(shape)} in the engine"
    return ""


def _shape(tensor: Any) -> tuple[int, ...] | None:
    try:
        return tuple(tensor.shape)
    except ValueError:  # The library's way to say that the rank is unknown.
        return None
