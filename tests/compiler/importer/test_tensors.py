"""What a tensor declares and what it stores must agree, before anything is allocated."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler.passes.tensors import LAYOUTS, check_tensor
from trtc.profiles import ModelError

ELEMENT_TYPES = [(name, number) for name, number in TensorProto.DataType.items() if name != "UNDEFINED"]


def test_huge_dims_without_data_are_refused_without_allocation(imported, relu):
    relu.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**40, 2**40]))
    with pytest.raises(ModelError, match=rf"'w'.*need {2**80} entries of float_data, found 0"):
        imported(relu)


def test_dims_whose_product_is_zero_in_64_bits_are_refused(imported, relu):
    relu.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.INT8, dims=[2**32, 2**32], raw_data=b""))
    with pytest.raises(ModelError, match=f"need {2**64} "):
        imported(relu)


@pytest.mark.parametrize(("name", "number"), ELEMENT_TYPES)
def test_the_sizes_of_every_element_type_are_those_that_onnx_writes(name, number):
    for count in (1, 3, 5):
        if name == "STRING":
            tensor = helper.make_tensor("w", number, [count], [b"a"] * count)
        else:
            array = np.zeros(count, helper.tensor_dtype_to_np_dtype(number))
            tensor = numpy_helper.from_array(array, "w")
            assert len(tensor.raw_data) == LAYOUTS[number].size_bytes(count)
            check_tensor(helper.make_tensor("w", number, [count], array), "w")
        check_tensor(tensor, "w")
        tensor.dims[0] = count + 8
        with pytest.raises(ModelError, match=r"need .* found"):
            check_tensor(tensor, "w")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"dims": [-1], "raw_data": b"\0\0\0\0"}, "no negative dim", id="negative"),
        pytest.param({"dims": [1], "float_data": [1], "raw_data": b"\0\0\0\0"}, "one form of data", id="both"),
        pytest.param({"dims": [1], "int64_data": [1]}, "stored in float_data", id="wrong-field"),
        pytest.param({"dims": [2], "raw_data": b"\0" * 9}, "need 8 bytes of raw_data, found 9", id="too-many"),
        pytest.param({"dims": [1], "data_type": 0, "raw_data": b"\0"}, "element type 0 is unknown", id="undefined"),
        pytest.param({"dims": [1], "data_type": 99, "raw_data": b"\0"}, "element type 99 is unknown", id="future"),
        pytest.param({"dims": [1], "float_data": [1], "segment": {"begin": 0, "end": 1}}, "segments", id="segments"),
        pytest.param({"dims": [1], "data_type": 8, "raw_data": b"abcd"}, "string", id="raw-string"),
    ],
)
@pytest.mark.parametrize("place", ["initializer", "constant", "subgraph", "function"])
def test_a_contradiction_is_found_wherever_the_tensor_stands(*, imported, model, value, change, words, place):
    tensor = TensorProto(**{"name": "w", "data_type": TensorProto.FLOAT, **change})
    constant = helper.make_node("Constant", [], ["k"], "c", value=tensor)
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    rest = {}
    if place == "initializer":
        rest["initializers"] = [tensor]
    elif place == "constant":
        nodes.append(constant)
    elif place == "subgraph":
        branch = helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "b", [], [value("b")], [tensor])
        nodes.append(helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch))
    else:
        body = [constant, helper.make_node("Identity", ["a"], ["b"])]
        rest["functions"] = [helper.make_function("my.dom", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)])]
    proto = model(nodes, inputs=["x", value("c", [], TensorProto.BOOL)], **rest)
    with pytest.raises(ModelError, match=words):
        imported(proto)


def test_sparse_initializers_are_refused(imported, relu, weight):
    values, indices = weight("s", [1]), weight("i", [0], np.int64)
    relu.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2**40]))
    with pytest.raises(ModelError, match="sparse initializer 's'"):
        imported(relu)


def test_empty_tensors_and_scalars_are_fine(imported, model, weight, run):
    proto = model(
        [helper.make_node("Add", ["x", "s"], ["y"])],
        initializers=[weight("s", 2.0), weight("e", np.zeros((0, 3)))],
    )
    assert run(imported(proto), {"x": np.ones((1, 4), np.float32)})["y"].tolist() == [[3, 3, 3, 3]]
