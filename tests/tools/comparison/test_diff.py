"""``trtc diff``: the changes in words, the figures, the gate."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from trtc.engines import read_manifest
from trtc.tools.comparison.changes import changes_between

FLAT = ["--measure-seconds", "0"]
BRIEF = ["--seconds", "0"]


@pytest.fixture(scope="module")
def changed(trtc, encoder, tmp_path_factory):
    """A bundle of the encoder with another weight, one profile more, and no padding of rows."""
    path = tmp_path_factory.mktemp("changed") / "model.onnx"
    model = onnx.load(encoder)
    table = next(t for t in model.graph.initializer if t.name == "table")
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table) * np.float32(1.01), "table"))
    onnx.save(model, path)
    words = ["--dim", "batch=1..4", "--buckets", "seq=8,16,32", "--pad", "seq"]
    fills = ["--fill", "input_ids=0", "--fill", "attention_mask=0"]
    assert trtc("build", path, "-o", path.with_suffix(".trtc"), *words, *fills, *FLAT).code == 0
    return path.with_suffix(".trtc")


@pytest.fixture
def traffic(tmp_path):
    path = tmp_path / "sizes.jsonl"
    rows = [{"batch": 1, "seq": 5, "count": 12}, {"sizes": {"seq": 12, "batch": 2}, "count": 1}, {"batch": 1, "seq": 5}]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_a_bundle_beside_itself_shows_no_change(trtc, built):
    said = trtc("diff", built, built, *BRIEF, "--fail-if", "cosine<1,max_abs>0,memory>+0%,size>+0%", "--json")
    assert said.code == 0, said.err
    report = said.json
    assert set(report) == {
        *("schema", "old", "new", "passed", "changes", "figures", "differences", "verdicts", "requests", "rounds"),
        "notes",
    }
    assert (report["schema"], report["changes"], report["differences"]) == ("trtc.diff/1", [], [])
    assert [v["state"] for v in report["verdicts"]] == ["passed"] * 5


def test_the_changes_in_plan_engines_and_evidence_are_listed(built, changed):
    found = {(c.part, c.what): (c.old, c.new) for c in changes_between(read_manifest(built), read_manifest(changed))}
    assert found["source", "model"][0] != found["source", "model"][1]
    assert found["plan", "profile p2"] == ("", "batch 1..4, seq 1..32")
    assert found["plan", "padding batch"] == ("rows", "")
    assert ("engines", "cpu: files") in found
    assert found["evidence", "rows of batch"] == ("accepted", "")
    assert not any(part == "plan" and what.startswith(("input", "output")) for part, what in found)


def test_a_condition_that_holds_fails_and_is_written_for_the_build_server(trtc, built, changed, traffic, tmp_path):
    wanted = "cosine<0.999,max_abs>0.001,memory>+10%"
    said = trtc(
        "diff", built, changed, "--traffic", traffic, *BRIEF, "--fail-if", wanted, "--junit", tmp_path / "r.xml"
    )
    assert said.code == 1
    assert "max_abs>0.001: max_abs 0.0" in said.err
    assert "memory>+10%: memory" in said.err
    assert "cosine" not in said.err
    suite = ET.parse(tmp_path / "r.xml").getroot()  # noqa: S314 (our own file)
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")
    states = {case.get("name"): case.find("failure") is None for case in suite}
    assert states == {
        "serves what the old one does": True,
        "cosine<0.999": True,
        "max_abs>0.001": False,
        "memory>+10%": False,
    }


def test_times_are_measured_in_turns_and_their_noise_is_stated(trtc, built, traffic):
    said = trtc("diff", built, built, "--traffic", traffic, "--seconds", "0.05", "--fail-if", "p99>+1000%", "--json")
    assert said.code == 0, said.err
    figures = {figure["name"]: figure for figure in said.json["figures"]}
    assert {"mean", "p50", "p90", "p95", "p99"} <= set(figures)
    assert figures["p50"]["low"] <= figures["p50"]["change"] <= figures["p50"]["high"]
    assert said.json["rounds"] >= 10
    assert said.json["requests"] == 2


def test_requests_that_the_new_bundle_does_not_serve_fail_the_gate(trtc, built, changed):
    said = trtc("diff", changed, built, *BRIEF, "--fail-if", "size>+1000%")
    assert said.code == 1
    assert "1 of 3 requests are not served: seq=32" in said.err
    assert trtc("diff", changed, built, *BRIEF).code == 0, "without a condition it only tells"


def test_a_bundle_that_serves_no_request_fails_without_a_condition(trtc, built, encoder, tmp_path):
    words = ["--dim", "batch=1..4", "--dim", "seq=1:2:2", "--measure-seconds", "0"]
    assert trtc("build", encoder, "-o", tmp_path / "small.trtc", *words).code == 0
    said = trtc("diff", built, tmp_path / "small.trtc", *BRIEF)
    assert said.code == 1
    assert "the new bundle serves none of the 2 requests of the old one: seq=8" in said.err
    assert "0 requests" not in said.out + said.err


def test_outputs_that_cannot_be_compared_fail_conditions_about_answers(trtc, built, encoder, tmp_path):
    model = onnx.load(encoder)
    del model.graph.output[1]
    onnx.save(model, tmp_path / "less.onnx")
    assert trtc("build", tmp_path / "less.onnx", "-o", tmp_path / "less.trtc", *FLAT).code == 0
    said = trtc("diff", built, tmp_path / "less.trtc", *BRIEF, "--fail-if", "cosine<0.5")
    assert said.code == 1
    assert "output 'pooled': it is missing" in said.err


def test_samples_are_run_instead_of_generated_requests(trtc, built, good_request):
    said = trtc("diff", built, built, *BRIEF, "--samples", good_request, "--json")
    assert (said.code, said.json["requests"], said.json["notes"]) == (0, 1, [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["--fail-if", "p98>5%"], "did you mean 'p99'", id="condition"),
        pytest.param(["--seconds", "0", "--fail-if", "p99>5%"], "--seconds 0 measures none", id="times-without-time"),
        pytest.param(["--seconds", "-1"], "--seconds", id="negative-seconds"),
        pytest.param(["--seconds", "0", "--traffic", "none.jsonl"], "cannot be read: No such file", id="no-traffic"),
        pytest.param(["--seconds", "0", "--traffic", "BAD"], "did you mean 'seq'", id="bad-traffic"),
        pytest.param(["--seconds", "0", "--traffic", "WIDE"], "seq=99", id="traffic-that-is-not-served"),
        pytest.param(["--junit", "/no/such/folder/r.xml"], "there is no folder", id="unwritable"),
    ],
)
def test_wrong_use_is_told(trtc, built, tmp_path, words, says):
    bad, wide = tmp_path / "bad.jsonl", tmp_path / "wide.jsonl"
    bad.write_text('{"batch": 1, "seg": 2}')
    wide.write_text('{"batch": 1, "seq": 99}')
    said = trtc("diff", built, built, *({"BAD": bad, "WIDE": wide}.get(word, word) for word in words))
    assert said.code == 2
    assert says in said.err
