"""Where onnx's own evaluator is known to compute something else than the operator's specification says.

It is the second reference, and a difference from it stops a build, so it is not asked about models that it misreads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.onnx_types import all_nodes, subgraphs

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

_BATCH_NORM_OPSET = 14


def known_fault(proto: onnx.ModelProto) -> str:
    """Say what the evaluator would get wrong in a model; empty when nothing is known."""
    opsets = {o.domain: o.version for o in proto.opset_import}
    faults = (_fault(node, opsets) for node in all_nodes(proto.graph))
    return next((fault for fault in faults if fault), "")


def _fault(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str:
    if node.domain not in ("", "ai.onnx"):
        return ""
    opset = opsets.get("", opsets.get("ai.onnx", _BATCH_NORM_OPSET))
    if node.op_type == "BatchNormalization" and opset < _BATCH_NORM_OPSET:
        # It decides by the attribute ``momentum``, which has a default there and so is always present.
        return f"onnx's evaluator computes BatchNormalization before opset {_BATCH_NORM_OPSET} as in training"
    if node.op_type == "Loop" and _has_scan_outputs(node):
        return "onnx's evaluator joins the scan outputs of a Loop along their own first axis instead of a new one"
    if node.op_type == "Optional":
        return "onnx's evaluator wraps the value of an Optional in a list"
    return ""


def _has_scan_outputs(node: onnx.NodeProto) -> bool:
    """The body of a Loop returns its condition and the carried values first; it takes the iteration number as well."""
    return any(len(body.output) - 1 > len(body.input) - 2 for body in subgraphs(node))
