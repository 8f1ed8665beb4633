"""``trtc check`` asks every question of a build, and builds nothing."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

FIELDS = {
    *("schema", "supported", "problem", "targets", "signature", "sizes", "profiles", "memory", "claims", "notes"),
    "padding",
}


def test_a_model_that_can_be_built_is_supported(trtc, encoder):
    words = ["--dim", "batch=1..4", "--buckets", "seq=8,16", "--pad", "seq", "--pad", "batch"]
    said = trtc("check", encoder, *words, "--fill", "input_ids=0", "--fill", "attention_mask=0", "--json")
    report = said.json
    assert (said.code, set(report), report["schema"]) == (0, FIELDS, "trtc.check/1")
    assert report["supported"] is True
    assert [(c["kind"], c["symbol"], c["verdict"]) for c in report["claims"]] == [
        ("rows", "batch", "accepted"),
        ("padding", "seq", "accepted"),
        ("padding", "seq,batch", "accepted"),
    ]
    assert report["padding"] == [
        {"symbol": "seq", "side": "right", "fills": {"input_ids": 0, "attention_mask": 0}, "accept_error": False},
        {"symbol": "batch", "side": "rows", "fills": {}, "accept_error": False},
    ]
    assert [m["profile"] for m in report["memory"]] == ["p0", "p1"]
    assert report["memory"][0]["slot_bytes"] < report["memory"][1]["slot_bytes"]
    assert not encoder.with_suffix(".trtc").exists()


def mean_over(axis: int):
    """Y = mean of x over one axis: padding seq moves it, and so does padding batch."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", "seq"]) for n in "xy")
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[axis], keepdims=1),
        helper.make_node("Sub", ["x", "m"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def test_every_refused_claim_is_reported_with_its_error(trtc, tmp_path):
    graph = mean_over(1)
    graph.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("axes", [0, 1]))
    onnx.save(graph, tmp_path / "mean.onnx")
    said = trtc("check", tmp_path / "mean.onnx", "--pad", "seq", "--pad", "batch", "--fill", "x=0", "--json")
    assert said.code == 1
    claims = said.json["claims"]
    assert [(c["kind"], c["verdict"]) for c in claims] == [
        ("rows", "refused"),
        ("padding", "refused"),
        ("padding", "refused"),
    ]
    for claim in claims:
        assert claim["max_abs"] > claim["allowed"] > 0
        assert claim["output"] == "y"
    assert "rows along batch is refused" in said.err
    assert "padding seq is refused" in said.err


def test_a_known_deviation_is_no_refusal(trtc, tmp_path):
    onnx.save(mean_over(1), tmp_path / "mean.onnx")
    said = trtc("check", tmp_path / "mean.onnx", "--pad", "seq", "--fill", "x=0", "--accept-padding-error", "--json")
    assert said.code == 0
    assert [c["verdict"] for c in said.json["claims"]] == ["deviation accepted"]


def test_a_target_that_needs_ranges_says_which_and_the_others_are_still_looked_at(trtc, encoder):
    said = trtc("check", encoder, "--target", "null", "--target", "cpu", "--json")
    assert said.code == 3
    null, cpu = said.json["targets"]
    assert (null["supported"], null["needs_ranges"], cpu["supported"]) == (False, True, True)
    assert "'batch', 'seq' have no upper end" in null["reason"]
    assert trtc("check", encoder, "--target", "null", "--dim", "batch=1..2", "--dim", "seq=1..2").code == 0


def test_all_unknown_operators_are_named_with_their_nodes(trtc, tmp_path):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows"]) for n in "xy")
    nodes = [
        helper.make_node("Foo", ["x"], ["a"], domain="acme", name="first"),
        helper.make_node("Bar", ["a"], ["y"], domain="acme", name="second"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "foo.onnx")
    said = trtc("check", tmp_path / "foo.onnx", "--json")
    assert (said.code, said.json["supported"], said.json["signature"]) == (3, False, None)
    for word in ("acme::Foo", "first", "acme::Bar", "second"):
        assert word in said.json["problem"]


def test_sizes_that_do_not_run_are_told_with_the_reason(trtc, tmp_path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "h", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    w = helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 3, 3], [1.0] * 9)
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], "g", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), tmp_path / "c.onnx")
    sizes = trtc("check", tmp_path / "c.onnx", "--json").json["sizes"]
    assert sizes["h"]["min"] == 3
    assert "conv" in sizes["h"]["reason"]
    said = trtc("check", tmp_path / "c.onnx", "--dim", "h=1..8")
    assert said.code == 3
    assert "h=1 is in the range 1..8, but the model cannot run it" in said.err


@pytest.mark.parametrize("words", [["--dim", "zeq=1..2"], ["--target", "gpu"], ["--pad", "seq"]])
def test_wrong_use_is_not_a_verdict(trtc, encoder, words):
    said = trtc("check", encoder, *words)
    assert (said.code, said.out) == (2, "")


def test_the_padding_that_was_asked_for_stands_beside_its_verdict(trtc, tmp_path):
    onnx.save(mean_over(1), tmp_path / "mean.onnx")
    said = trtc("check", tmp_path / "mean.onnx", "--pad", "seq:left", "--fill", "x=7")
    assert said.code == 1
    assert "\npadding seq on the left, x=7: REFUSED in " in said.out
    assert trtc("check", tmp_path / "mean.onnx").out.count("padding") == 0


def test_why_a_target_is_not_supported_is_said_once(trtc, encoder):
    said = trtc("check", encoder, "--target", "null")
    assert said.code == 3
    assert "have no upper end" in said.err
    assert "have no upper end" not in said.out
