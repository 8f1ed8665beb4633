"""IR versions and operator sets: found and supported are both said."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from trtc.compiler.passes.supported import ir_limit, opset_limits
from trtc.profiles import ModelError


def test_an_unset_ir_version_is_refused(imported, relu):
    relu.ClearField("ir_version")
    with pytest.raises(ModelError, match=r"ir_version is not set.*reads up to"):
        imported(relu)


def test_versions_beyond_the_libraries_are_refused_together_with_both_numbers(imported, model):
    proto = model([helper.make_node("Relu", ["x"], ["y"])], opsets={"": 99}, ir=99)
    with pytest.raises(ModelError) as caught:
        imported(proto)
    for word in ["ir_version 99", "opset 99 of ai.onnx", onnx.__version__, onnxruntime.__version__]:
        assert word in str(caught.value)


def test_the_newest_version_is_accepted_and_the_next_is_not(imported, model):
    newest = opset_limits()[""].newest
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    assert imported(model(nodes, opsets={"": newest}, ir=ir_limit().newest)).proto.opset_import[0].version == newest
    with pytest.raises(ModelError, match=f"opset {newest + 1}"):
        imported(model(nodes, opsets={"": newest + 1}))
    with pytest.raises(ModelError, match=f"ir_version {ir_limit().newest + 1}"):
        imported(model(nodes, ir=ir_limit().newest + 1))


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml", "com.microsoft"])
def test_a_limit_is_where_onnx_runtime_stops_or_onnx_does(relu, run, domain):
    limit = opset_limits()[domain]

    def opens(version):
        del relu.opset_import[:]
        for name, opset in ({"": 17} | {domain: version}).items():
            relu.opset_import.add(domain=name, version=opset)
        try:
            run(relu.SerializeToString(), {"x": np.zeros((1, 4), np.float32)})
        except Exception:  # noqa: BLE001 (any way to refuse)
            return False
        return True

    assert opens(limit.newest)
    assert limit.newest == limit.onnx or not opens(limit.newest + 1)


def test_no_opset_import_at_all_is_refused(imported, relu):
    del relu.opset_import[:]
    with pytest.raises(ModelError, match="imports no operator set"):
        imported(relu)


def test_two_versions_of_one_domain_are_refused_under_either_spelling(imported, model):
    proto = model([helper.make_node("Relu", ["x"], ["y"])], opsets={"": 17, "ai.onnx": 18})
    with pytest.raises(ModelError, match=r"ai\.onnx twice, as 17 and 18"):
        imported(proto)


def test_ai_onnx_is_the_standard_domain(imported, model, run):
    proto = model([helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")], opsets={"ai.onnx": 17})
    loaded = imported(proto)
    assert [(o.domain, o.version) for o in loaded.proto.opset_import] == [("", 17)]
    assert loaded.proto.graph.node[0].domain == ""
    assert run(loaded, {"x": np.array([[-1, 2, -3, 4]], np.float32)})["y"].tolist() == [[0, 2, 0, 4]]


def test_an_opset_before_the_first_kernels_gets_a_note(imported, model):
    loaded = imported(model([helper.make_node("Relu", ["x"], ["y"])], opsets={"": 6}, ir=3))
    assert any("opset 6" in note and "version_converter" in note for note in loaded.notes)
