"""What rewriting promises of a whole model: the same bytes each time, free names, outputs that keep theirs."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from trtc.engines.onnxruntime import fusions
from trtc.engines.onnxruntime.fusions import fuse, fuse_model

HARD = """(float[n] x) => (float[n] y) {
    %s = Add(x, three)
    %s = Clip(val_0, zero, six)
    val_2 = Mul(x, val_1)
    y = Div(val_2, six)
}"""


def test_the_same_model_gives_the_same_bytes(ppocr_rec_path):
    found = []
    for _ in range(2):
        model = ir.load(ppocr_rec_path)
        counts = fuse_model(model, "all")
        found.append((counts, ir.to_proto(model).SerializeToString(deterministic=True)))
    assert found[0] == found[1]
    assert min(found[0][0][name] for name in ("behind-conv", "before-conv", "hard-sigmoid")) > 20


def test_new_names_do_not_stand_in_the_model_yet(rewrite):
    text = (HARD % ("val_0", "val_1")).replace("val_2", "fused")
    found = rewrite(text, three=3.0, zero=0.0, six=6.0)
    assert found.counts == {"hard-sigmoid": 1}
    assert found.after.graph.node[0].output[0].startswith("fused_/")
    found.assert_equal(x=np.linspace(-5, 5, 11, dtype=np.float32))


def test_a_model_with_nothing_to_rewrite_is_left_where_it_is(tmp_path, tiny_model):
    onnx.save(tiny_model("n", 4), tmp_path / "model.onnx")
    assert fuse(tmp_path / "model.onnx", "all") is None
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_declared_output_shapes_stay_as_they_are(rewrite):
    text = (HARD % ("val_0", "val_1")).replace("=> (float[n] y)", "=> (float[m] y)")
    found = rewrite(text, three=3.0, zero=0.0, six=6.0)
    assert found.after.graph.output == found.before.graph.output
    assert not any(info.type.tensor_type.HasField("shape") for info in found.after.graph.value_info)


def test_weights_that_lie_beside_a_model_stay_there(tmp_path, rewrite):
    text = """(float[n, 8] x) => (float[n, 16] y) {
        a = MatMul(x, w) b = Add(a, three) c = Clip(b, zero, six) d = Mul(a, c) y = Div(d, six)
    }"""
    weights = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    model = rewrite(text, three=3.0, zero=0.0, six=6.0, w=weights).before
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="data", size_threshold=100)
    found = fuse(tmp_path / "model.onnx", "all")
    assert found.counts == {"hard-sigmoid": 1}
    assert found.path.parent == tmp_path
    (external,) = (t for t in onnx.load(found.path, load_external_data=False).graph.initializer if t.external_data)
    assert {entry.key: entry.value for entry in external.external_data}["location"] == "data"
    loaded = {tensor.name: tensor for tensor in onnx.load(found.path).graph.initializer}
    np.testing.assert_array_equal(numpy_helper.to_array(loaded[external.name]), weights)


def test_a_model_that_would_not_fit_into_a_protobuf_is_left_as_it_is(tmp_path, rewrite, monkeypatch):
    model = rewrite(HARD % ("val_0", "val_1"), three=3.0, zero=0.0, six=6.0).before
    onnx.save(model, tmp_path / "model.onnx")
    assert fuse(tmp_path / "model.onnx", "all") is not None
    monkeypatch.setattr(fusions, "MAX_INSIDE_BYTES", -1)
    assert fuse(tmp_path / "model.onnx", "all") is None


@pytest.mark.parametrize("reader", ["then_branch", "else_branch"])
def test_what_a_branch_reads_is_left_alone(rewrite, reader):
    other = {"then_branch": "else_branch", "else_branch": "then_branch"}[reader]
    text = f"""(float[n] x, bool yes) => (float[n] y) {{
        a = Add(x, three)
        b = Clip(a, zero, six)
        y = If (yes) <
            {reader} = t () => (float[n] p) {{ d = Mul(x, b) p = Div(d, six) }},
            {other} = e () => (float[n] q) {{ q = Identity(x) }}
        >
    }}"""
    found = rewrite(text, three=3.0, zero=0.0, six=6.0)
    assert not found.counts
    for yes in (True, False):
        found.assert_equal(x=np.linspace(-4, 4, 9, dtype=np.float32), yes=np.array(yes))
