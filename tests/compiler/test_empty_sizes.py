"""Empty sizes are tried where they can do no harm, and allowed only where the model really takes them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.empty_sizes import why_not_empty
from trtc.compiler.reference import open_reference
from trtc.compiler.signature import SourceOptions, find_signature

FLOAT = TensorProto.FLOAT


def may_be_empty(model):
    found = find_signature(model, open_reference(model, 1), SourceOptions(), {})
    return (
        set(found.workable)
        - why_not_empty(model, found.signature, found.values, found.base, list(found.workable)).keys()
    )


def lstm(model_of):
    """Ends the process at B=0 in ONNX Runtime 1.32."""
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=2)
    constants = {"w": np.ones((1, 8, 3), np.float32), "r": np.ones((1, 8, 2), np.float32)}
    return model_of([node], {"x": (FLOAT, ["T", "B", 3])}, {"y": (FLOAT, [1, "B", 2])}, constants)


@pytest.mark.parametrize(
    "dtype", [FLOAT, TensorProto.STRING, TensorProto.BFLOAT16], ids=["float", "string", "bfloat16"]
)
def test_every_symbol_of_a_model_without_demands_may_be_empty(model_of, dtype):
    node = helper.make_node("Identity", ["x"], ["y"])
    model = model_of([node], {"x": (dtype, ["A", "B"])}, {"y": (dtype, ["A", "B"])})
    assert may_be_empty(model) == {"A", "B"}


def test_a_kernel_that_ends_the_process_at_an_empty_size_ends_only_its_own(model_of):
    assert "B" not in may_be_empty(lstm(model_of))


def test_symbols_after_one_that_ended_the_process_are_still_tried(model_of):
    model = lstm(model_of)
    model.proto.graph.node.append(helper.make_node("Relu", ["z"], ["v"]))
    model.proto.graph.input.append(helper.make_tensor_value_info("z", FLOAT, ["C"]))
    model.proto.graph.output.append(helper.make_tensor_value_info("v", FLOAT, ["C"]))
    model.path.write_bytes(model.proto.SerializeToString())
    found = may_be_empty(model)
    assert "C" in found
    assert "B" not in found


def test_a_model_that_fails_at_an_empty_size_refuses_it(model_of):
    node = helper.make_node("Gather", ["x", "first"], ["y"], axis=1)
    model = model_of([node], {"x": (FLOAT, ["A", "B"])}, {"y": (FLOAT, ["A"])}, {"first": np.array(0)})
    assert may_be_empty(model) == {"A"}
