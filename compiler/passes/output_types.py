"""Outputs that the file lists by name alone get the type that inference tells."""

from __future__ import annotations

import onnx

from trtc.compiler.passes.result import PassResult


def run(model: onnx.ModelProto) -> PassResult:
    """Give outputs without a type the inferred one, without its shape: runs decide about shapes.

    Where inference knows nothing the output stays as it was, and is typed by each run.
    """
    bare = {output.name for output in model.graph.output if output.type.WhichOneof("value") is None}
    if not bare:
        return PassResult(model, changed=False)
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 (inference is help, not a check: without it the runs decide alone)
        return PassResult(model, changed=False)
    types = {value.name: value.type for value in (*inferred.graph.output, *inferred.graph.value_info)}
    types |= {value.name: value.type for value in inferred.graph.input}
    changed = False
    for output in model.graph.output:
        if output.name in bare and types.get(output.name, onnx.TypeProto()).WhichOneof("value") is not None:
            output.type.CopyFrom(types[output.name])
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
            changed = True
    return PassResult(model, changed)
