"""Every operator that cannot run is listed, with its node and what kind of unknown it is."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.profiles import ModelError


def test_all_unknown_operators_are_listed_at_once_by_kind(imported, model, value):
    branch = helper.make_graph(
        [helper.make_node("Mystery", ["x"], ["b"], "inner", domain="my.dom")], "b", [], [value("b")]
    )
    other = helper.make_graph([helper.make_node("Relu", ["x"], ["e"])], "e", [], [value("e")])
    proto = model(
        [
            helper.make_node("FusedNothing", ["x"], ["t"], "contrib", domain="com.microsoft"),
            helper.make_node("Rellu", ["t"], ["u"], "standard"),
            helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other),
        ],
        inputs=["x", value("c", [], TensorProto.BOOL)],
        opsets={"": 17, "my.dom": 1},
    )
    with pytest.raises(ModelError) as caught:
        imported(proto)
    lines = str(caught.value).splitlines()
    assert [line.split("::")[0].strip() for line in lines[1:]] == ["com.microsoft", "ai.onnx", "my.dom"]
    for line, words in zip(
        lines[1:], [("contrib", "'contrib'"), ("standard", "Relu"), ("foreign", "'inner'")], strict=True
    ):
        assert all(word in line for word in words)


def test_an_operator_newer_than_the_opset_is_refused(imported, model):
    with pytest.raises(ModelError, match=r"ai.onnx::Gelu: first in opset 20.*imports 17"):
        imported(model([helper.make_node("Gelu", ["x"], ["y"])]))


def test_an_operator_that_the_opset_removed_is_refused(imported, model, weight):
    proto = model([helper.make_node("Upsample", ["x", "s"], ["y"])], initializers=[weight("s", [1, 2])])
    with pytest.raises(ModelError, match="Upsample: removed in opset 10"):
        imported(proto)


def test_an_operator_that_only_onnx_defines_is_refused_as_such(imported, model):
    nodes = [helper.make_node("Adagrad", ["r", "t", "x", "g", "h"], ["y", "n"], domain="ai.onnx.preview.training")]
    proto = model(nodes, inputs=["r", "t", "x", "g", "h"], opsets={"": 17, "ai.onnx.preview.training": 1})
    with pytest.raises(ModelError, match=r"defined by onnx .* but ONNX Runtime"):
        imported(proto)


def test_a_contrib_operator_without_an_import_gets_one(imported, model, run):
    loaded = imported(model([helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")]))
    assert {o.domain: o.version for o in loaded.proto.opset_import} == {"": 17, "com.microsoft": 1}
    assert any("com.microsoft" in note for note in loaded.notes)
    assert run(loaded, {"x": np.zeros((1, 4), np.float32)})["y"].tolist() == [[0, 0, 0, 0]]


def test_an_import_that_no_node_uses_is_dropped_with_a_note(imported, model):
    loaded = imported(model([helper.make_node("Relu", ["x"], ["y"])], opsets={"": 17, "torch.aten": 1}))
    assert [o.domain for o in loaded.proto.opset_import] == [""]
    assert any("torch.aten" in note for note in loaded.notes)


def test_the_standard_domain_must_be_imported(imported, model):
    with pytest.raises(ModelError, match=r"does not import ai\.onnx"):
        imported(model([helper.make_node("Relu", ["x"], ["y"])], opsets={"com.microsoft": 1}))
