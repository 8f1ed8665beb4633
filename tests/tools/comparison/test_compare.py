"""``trtc compare`` on a small encoder: every way through a bundle, against everything that it may equal."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

FLAT = ["--measure-seconds", "0"]


def with_other_weights(path, target, row=3, amount=0.01):
    model = onnx.load(path)
    table = next(t for t in model.graph.initializer if t.name == "table")
    values = numpy_helper.to_array(table).copy()
    values[row] += amount
    table.CopyFrom(numpy_helper.from_array(values, "table"))
    onnx.save(model, target)
    return target


@pytest.fixture(scope="module")
def altered_model(encoder, tmp_path_factory):
    return with_other_weights(encoder, tmp_path_factory.mktemp("altered") / "altered.onnx")


@pytest.fixture(scope="module")
def altered(trtc, altered_model):
    path = altered_model.with_suffix(".trtc")
    assert trtc("build", altered_model, "-o", path, *FLAT).code == 0
    return path


def test_a_bundle_agrees_with_its_model_in_every_profile_exact_and_padded(trtc, built, encoder):
    said = trtc("compare", built, encoder, "--json")
    assert said.code == 0, said.err
    report = said.json
    assert set(report) == {
        *("schema", "bundle", "against", "passed", "failures", "outputs", "cases", "parting", "notes")
    }  # fmt: skip
    assert (report["schema"], report["passed"], report["failures"]) == ("trtc.compare/1", True, [])
    ways = {(case["profile"], case["mode"]) for case in report["cases"]}
    assert ways == {(p, m) for p in ("p0", "p1") for m in ("exact", "bucket")}
    for case in report["cases"]:
        assert [o["output"] for o in case["outputs"]] == ["hidden", "pooled"]
        assert (case["run_sizes"] != case["sizes"]) is (case["mode"] == "bucket")
    assert {o["output"]: o["passed"] for o in report["outputs"]} == {"hidden": True, "pooled": True}


def test_a_bundle_of_altered_weights_fails_and_the_worst_element_is_told(trtc, altered, encoder):
    said = trtc("compare", altered, encoder, "--json")
    assert said.code == 1
    assert "output 'hidden': differs by" in said.err
    worst = next(o["worst"] for o in said.json["outputs"] if o["output"] == "hidden")
    assert worst["max_abs"] == pytest.approx(abs(worst["got"] - worst["expected"]), rel=1e-3)
    assert len(worst["where"]) == 3
    assert "was built from another model" in said.json["notes"][0]


def test_a_wider_tolerance_for_the_outputs_that_differ_lets_it_pass(trtc, altered, encoder):
    assert trtc("compare", altered, encoder, "--atol", "hidden:0.5", "pooled:5").code == 0
    assert trtc("compare", altered, encoder, "--atol", "hidden:0.5").code == 1
    assert trtc("compare", altered, encoder, "--atol", "5", "--check-error-stat", "max").code == 0
    assert (
        trtc("compare", altered, encoder, "--atol", "1e-4", "--check-error-stat", "hidden:mean", "pooled:max").code == 1
    )


@pytest.mark.parametrize("backend", ["onnxruntime", "onnxruntime-optimized", "onnx"])
def test_every_backend_of_a_model_can_be_the_other_side(trtc, built, encoder, altered_model, backend):
    few = ["--backend", backend, "--profile", "p0", "--mode", "exact", "--val-range", "input_ids:[0,9]"]
    assert trtc("compare", built, encoder, *few).code == 0
    assert trtc("compare", built, altered_model, *few).code == 1


def test_another_bundle_can_be_the_other_side(trtc, built, built_open, altered):
    ids = ["--val-range", "input_ids:[0,9]"]
    assert trtc("compare", built, built_open, *ids).code == 0
    assert trtc("compare", built, altered, *ids).code == 1


def test_another_engine_of_the_bundle_can_be_the_other_side(trtc, encoder, tmp_path):
    path = tmp_path / "two.trtc"
    closed = ["--dim", "batch=1..2", "--dim", "seq=1..4"]
    assert trtc("build", encoder, "-o", path, *closed, "--target", "cpu", "--target", "null", *FLAT).code == 0
    said = trtc("compare", path, "--other-engine", "null")
    assert said.code == 1, "an engine that computes nothing"


def test_sizes_that_the_other_bundle_does_not_serve_are_a_difference(trtc, built, encoder, tmp_path):
    path = tmp_path / "small.trtc"
    assert trtc("build", encoder, "-o", path, "--dim", "batch=1..4", "--dim", "seq=1..8", *FLAT).code == 0
    said = trtc("compare", built, path)
    assert said.code == 1
    assert "failed where the bundle ran: seq=16" in said.err


def test_saved_outputs_are_compared_request_by_request(trtc, built, altered, tmp_path):
    saved = ["--save-inputs", tmp_path / "in.json", "--save-outputs", tmp_path / "out.json"]
    assert trtc("compare", built, built, "--val-range", "input_ids:[0,9]", *saved).code == 0
    loaded = ["--load-inputs", tmp_path / "in.json", "--load-outputs", tmp_path / "out.json"]
    said = trtc("compare", built, *loaded, "--json")
    assert said.code == 0, said.err
    assert said.json["against"] == "out.json"
    assert trtc("compare", altered, *loaded).code == 1


def test_real_samples_run_in_every_profile_that_takes_them(trtc, built, encoder, good_request):
    said = trtc("compare", built, encoder, "--samples", good_request, "--json")
    assert said.code == 0, said.err
    assert len(said.json["cases"]) == 4
    assert all(case["sizes"] == {"batch": 2, "seq": 3} for case in said.json["cases"])
    padded = {case["profile"]: case["run_sizes"] for case in said.json["cases"] if case["mode"] == "bucket"}
    assert padded == {"p0": {"batch": 4, "seq": 8}, "p1": {"batch": 4, "seq": 16}}


def test_stated_sizes_are_run(trtc, built_open, encoder):
    said = trtc("compare", built_open, encoder, "--sizes", "batch=3,seq=50", "--sizes", "batch=1,seq=1", "--json")
    assert said.code == 0, said.err
    assert [case["sizes"] for case in said.json["cases"]] == [{"batch": 3, "seq": 50}, {"batch": 1, "seq": 1}]


def test_values_outside_of_what_padding_was_proved_for_are_told_apart(trtc, built, encoder, request_file):
    odd = request_file(input_ids=np.ones((2, 3), np.int64), attention_mask=np.full((2, 3), 2000, np.int64))
    said = trtc("compare", built, encoder, "--samples", odd, "--mode", "bucket")
    assert said.code == 0, said.err
    assert "ran at their exact sizes" in said.out


def test_nothing_compared_is_a_failure(trtc, tmp_path):
    """Every request fails on both sides: a Reshape that never fits."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", 7])
    shape = numpy_helper.from_array(np.array([-1, 7]), "shape")
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g", [x], [y], [shape])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    assert trtc("build", path, "-o", tmp_path / "m.trtc", *FLAT).code == 0
    said = trtc("compare", tmp_path / "m.trtc", path, "--sizes", "n=3")
    assert said.code == 1
    assert "nothing was compared: both sides failed" in said.err


@pytest.fixture(scope="module")
def places(built, encoder, request_file):
    """What the words of a command line stand for."""
    wide, flat = np.ones((1, 99), np.int64), np.ones(3, np.int64)
    return {
        "MODEL": encoder,
        "BUNDLE": built,
        "WIDE": request_file(input_ids=wide, attention_mask=wide),
        "RANK": request_file(input_ids=flat, attention_mask=flat),
        "LACKS": request_file(input_ids=wide),
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param([], "nothing to compare with", id="no-other-side"),
        pytest.param(["MODEL", "--iterations", "0"], "--iterations", id="zero-iterations"),
        pytest.param(["MODEL", "--profile", "p9"], "unknown profile 'p9'", id="unknown-profile"),
        pytest.param(["MODEL", "--atol", "hiden:1"], "did you mean 'hidden'", id="unknown-output"),
        pytest.param(["MODEL", "--val-range", "ids:[0,1]"], "unknown input 'ids'", id="unknown-input"),
        pytest.param(["MODEL", "--load-outputs", "x.json"], "one thing at a time", id="two-other-sides"),
        pytest.param(["--load-outputs", "x.json"], "needs the inputs", id="outputs-without-inputs"),
        pytest.param(["MODEL", "--save-outputs", "/no/such/folder/x.json"], "there is no folder", id="unwritable"),
        pytest.param(["MODEL", "--sizes", "batch=2"], "write --sizes batch=SIZE,seq=SIZE", id="a-size-is-missing"),
        pytest.param(["gone.onnx"], "no such file", id="missing-model"),
        pytest.param(["--other-engine", "gpu"], "unknown engine 'gpu'", id="unknown-engine"),
        pytest.param(["BUNDLE", "--backend", "onnx"], "--backend says what runs a model", id="backend-of-a-bundle"),
        pytest.param(["MODEL", "--samples", "WIDE"], "seq=99", id="samples-of-the-wrong-shape"),
        pytest.param(["MODEL", "--samples", "RANK"], "the model takes 2", id="samples-of-the-wrong-rank"),
        pytest.param(["MODEL", "--load-inputs", "LACKS"], "'attention_mask' is missing", id="an-input-is-missing"),
    ],
)
def test_wrong_use_is_told(trtc, built, places, words, says):
    said = trtc("compare", built, *(places.get(word, word) for word in words))
    assert said.code == 2
    assert says in said.err


def test_a_bundle_for_another_machine_is_an_environment_that_does_not_fit(trtc, bundle, encoder):
    import msgspec

    from trtc.engines import read_manifest, write_bundle

    manifest = read_manifest(bundle)
    needs = msgspec.structs.replace(manifest.engines[0].requirements, architecture="riscv64")
    record = msgspec.structs.replace(manifest.engines[0], requirements=needs)
    write_bundle(bundle, msgspec.structs.replace(manifest, engines=(record,)), {})
    said = trtc("compare", bundle, encoder)
    assert said.code == 4
    assert "built for riscv64" in said.err


def test_the_number_of_saved_answers_must_be_that_of_the_requests(trtc, built, good_request, tmp_path):
    saved = ["--save-inputs", tmp_path / "in.json", "--save-outputs", tmp_path / "out.json"]
    assert trtc("compare", built, built, *saved).code == 0
    said = trtc("compare", built, "--load-inputs", good_request, "--load-outputs", tmp_path / "out.json")
    assert said.code == 2
    assert "14 answers to 1 requests" in said.err


def test_without_polygraphy_the_message_says_how_to_get_it(trtc, built, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "polygraphy.comparator", None)
    said = trtc("compare", built, built, "--check-error-stat", "max")
    assert said.code == 4
    assert "pip install 'trtc[polygraphy]'" in said.err
