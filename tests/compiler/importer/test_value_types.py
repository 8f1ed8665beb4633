"""Types of inputs and outputs."""

import onnx
import pytest
from onnx import TensorProto, helper

from trtc.profiles import ModelError


def test_sequences_optionals_and_maps_are_allowed(imported, model):
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    sequence = helper.make_sequence_type_proto(tensor)
    inputs = [
        onnx.ValueInfoProto(name="s", type=sequence),
        onnx.ValueInfoProto(name="o", type=helper.make_optional_type_proto(sequence)),
        onnx.ValueInfoProto(name="m", type=helper.make_map_type_proto(TensorProto.INT64, tensor)),
    ]
    node = helper.make_node("SequenceLength", ["s"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.INT64, [])
    loaded = imported(model([node], inputs, [output]))
    assert [i.type.WhichOneof("value") for i in loaded.proto.graph.input] == [
        "sequence_type",
        "optional_type",
        "map_type",
    ]


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        pytest.param(onnx.TypeProto(), "without a type", id="none"),
        pytest.param(helper.make_tensor_type_proto(0, [1]), "element type 0", id="undefined"),
        pytest.param(helper.make_tensor_type_proto(99, [1]), "element type 99", id="future"),
        pytest.param(helper.make_sparse_tensor_type_proto(1, [1]), "sparse tensors are not supported", id="sparse"),
        pytest.param(
            helper.make_sequence_type_proto(helper.make_sparse_tensor_type_proto(1, [1])), "sparse", id="nested-sparse"
        ),
    ],
)
def test_an_input_of_no_known_type_is_refused_by_name(imported, model, declared, words):
    inputs = ["x", onnx.ValueInfoProto(name="odd", type=declared)]
    with pytest.raises(ModelError, match=f"input 'odd': .*{words}"):
        imported(model([helper.make_node("Relu", ["x"], ["y"])], inputs))


def test_an_output_that_has_only_a_name_is_allowed(imported, model):
    loaded = imported(model([helper.make_node("Relu", ["x"], ["y"])], outputs=[onnx.ValueInfoProto(name="y")]))
    assert loaded.proto.graph.output[0].name == "y"
