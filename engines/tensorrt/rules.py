"""Rules on single nodes, for what the library reads and then cannot build, or silently computes otherwise.

Each rule was seen with the real library, and a test builds its example to see that it still holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import AttributeProto, TensorProto, defs

from trtc.engines.build import NodeProblem
from trtc.engines.tensorrt.library import RTX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import onnx

RTX_LACKS = {
    "NonZero": "TensorRT for RTX does not have it; let the model return the mask and look for its ones afterwards",
    "NonMaxSuppression": "TensorRT for RTX reads it and has no kernel for it; run it after the model, on the CPU",
}
"""Operators that the parser of TensorRT for RTX counts among its own, and that it cannot build."""
_LENGTHS = 6
"""Index of ``nonpad_kv_seqlen`` among the inputs of Attention, from opset 24 on."""
_KNOWN_ATTENTION = frozenset(
    ["is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap", "softmax_precision"]
)
"""Attributes of Attention that the parser reads or refuses; it passes over those of newer opsets."""
_COPYING = frozenset(["Cast", "CastLike", "Constant", "Identity", "Shape", "Size"])
"""Operators that hold or convert a double without computing in double."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at beside a node.

    Attributes:
        library: ``tensorrt`` or ``tensorrt_rtx``.
        types: element type of each tensor, as ONNX numbers them, where it is known.
        unsupported: operators that the parser does not know.
        newest_opset: that the parser knows operators of.
        opset: of the model.
    """

    library: str
    types: Mapping[str, int]
    unsupported: frozenset[str]
    newest_opset: int
    opset: int


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield every node, also of inner graphs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from all_nodes(attribute.g)


def node_problems(graph: onnx.GraphProto, facts: Facts, *, inside_if: bool = False) -> Iterator[NodeProblem]:
    """Yield every node, also of inner graphs, that a rule refuses."""
    for node in graph.node:
        name = node.name or f"(writes {node.output[0]!r})" if node.output else node.name
        if message := _refused(node, facts, inside_if=inside_if):
            yield NodeProblem(name, node.op_type, message)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from node_problems(attribute.g, facts, inside_if=inside_if or node.op_type == "If")


def _refused(node: onnx.NodeProto, facts: Facts, *, inside_if: bool) -> str:
    if node.domain not in ("", "ai.onnx"):
        return ""  # Plug-ins have domains of their own; the parser knows which are there.
    operator = node.op_type
    if operator in facts.unsupported:
        return "the parser of the library does not know this operator"
    if facts.library == RTX:
        if operator in RTX_LACKS:
            return RTX_LACKS[operator]
        if operator == "If" and inside_if:
            return "TensorRT for RTX cannot build an If inside of an If; resolve the outer one when exporting"
    if operator == "Attention" and (why := _ignored_by_attention(node)):
        return why
    if _since(operator, facts.opset) > facts.newest_opset:
        return f"it changed in opset {_since(operator, facts.opset)}, and the library knows up to {facts.newest_opset}"
    if operator not in _COPYING and TensorProto.DOUBLE in {facts.types.get(t) for t in (*node.input, *node.output)}:
        return "it computes in double, and the library would compute in float without an error; convert it to float"
    return ""


def _ignored_by_attention(node: onnx.NodeProto) -> str:
    if len(node.input) > _LENGTHS and node.input[_LENGTHS]:
        return "its lengths (nonpad_kv_seqlen) would be ignored without an error; use an explicit mask"
    if new := sorted({attribute.name for attribute in node.attribute} - _KNOWN_ATTENTION):
        return f"its attribute {new[0]} would be ignored without an error; use an explicit mask"
    return ""


def _since(operator: str, opset: int) -> int:
    try:
        return int(defs.get_schema(operator, max_inclusive_version=opset, domain="").since_version)
    except defs.SchemaError:
        return 0
