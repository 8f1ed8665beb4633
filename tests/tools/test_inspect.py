"""``trtc inspect``: models are not run unasked, bundles are shown from their manifest alone."""

from __future__ import annotations

import shlex

import onnx
import pytest


def test_a_model_is_not_run_unasked(trtc, encoder, monkeypatch):
    monkeypatch.setattr("onnxruntime.InferenceSession.run", lambda *_: pytest.fail("the model was run"))
    said = trtc("inspect", encoder)
    assert said.code == 0
    assert "input  input_ids: int64 [batch, seq]" in said.out
    assert "nothing was run" in said.out


def test_the_report_of_a_model_has_the_documented_fields(trtc, encoder):
    report = trtc("inspect", encoder, "--json").json
    assert set(report) == {
        *("schema", "path", "source", "symbols", "inputs", "outputs", "ran", "sizes", "values", "metadata_keys"),
        *("notes", "build_command"),
    }
    assert (report["schema"], report["ran"], report["sizes"]) == ("trtc.inspect-model/1", False, {})
    assert set(report["source"]) == {"sha256", "size_bytes", "ir_version", "opsets", "producer", "nodes"}


def test_runs_show_the_sizes_and_how_outputs_follow(trtc, encoder):
    report = trtc("inspect", encoder, "--run", "--json").json
    assert report["ran"] is True
    assert report["sizes"]["seq"] == {"min": 1, "multiple_of": 1, "max": None, "reason": ""}
    assert [(o["name"], o["dims"]) for o in report["outputs"]] == [
        ("hidden", ["batch", "seq", 4]),
        ("pooled", ["batch", 4]),
    ]


@pytest.mark.parametrize("runs", [[], ["--run"]])
def test_the_command_that_is_shown_builds_the_model(trtc, tmp_path, tiny_model, runs):
    path = tmp_path / "a model.onnx"
    onnx.save(tiny_model("batch size", "é b"), path)
    report = trtc("inspect", path, *runs, "--json").json
    assert [s["typed"] for s in report["symbols"]] == ['"batch size"', '"é b"']
    program, *words = shlex.split(report["build_command"])
    assert program == "trtc"
    said = trtc(*words, "--measure-seconds", "0")
    assert said.code == 0, said.err
    assert (tmp_path / "a model.trtc" / "manifest.json").is_file()


def test_symbols_without_a_name_get_one_that_can_be_typed(trtc, tmp_path, tiny_model):
    path = tmp_path / "model.onnx"
    onnx.save(tiny_model("-1", None), path)
    symbols = [s["typed"] for s in trtc("inspect", path, "--json").json["symbols"]]
    assert symbols == ["x_0", "x_1"]
    assert trtc("check", path, *(w for s in symbols for w in ("--dim", f"{s}=1..4"))).code == 0


def test_the_report_of_a_bundle_has_the_documented_fields(trtc, built):
    report = trtc("inspect", built, "--json").json
    assert set(report) == {
        *(
            "schema",
            "path",
            "size_bytes",
            "chosen",
            "verdicts",
            "memory",
            "digests_checked",
            "metadata_keys",
            "manifest",
        ),
    }
    assert (report["schema"], report["chosen"], report["digests_checked"]) == ("trtc.inspect-bundle/1", "cpu", False)
    memory = report["memory"]
    assert memory["planned_bytes"] == memory["slots"] * memory["slot_bytes"] > 0
    assert trtc("inspect", built, "--verify-digests", "--json").json["digests_checked"] is True


def test_the_memory_that_is_shown_is_what_a_session_takes(trtc, built):
    from trtc.runtime import Arena, load

    arena = Arena()
    memory = trtc("inspect", built, "--json").json["memory"]
    with load(built, arena=arena) as session:
        assert session.stats.slot_bytes == memory["slot_bytes"]
        assert session.stats.slots == memory["slots"]


def test_open_ranges_have_no_memory_known_before(trtc, built_open):
    memory = trtc("inspect", built_open, "--json").json["memory"]
    assert (memory["slot_bytes"], memory["planned_bytes"]) == (None, None)
    assert "grows with the largest request" in trtc("inspect", built_open).out


def test_a_bundle_is_shown_with_everything_that_it_says(trtc, built):
    out = trtc("inspect", built).out
    for text in (
        "p1       batch 1..4, seq 1..16",
        "padding batch: by repeating the last row",
        "padding seq: on the right, attention_mask with 0, input_ids with 0",
        "padding is neutral along seq,batch",
        "input_ids 0..9",
        "chosen  fits: cpu with onnxruntime",
        "ONNX Runtime CPU, optimizations off",
        "requests run exact: nothing was measured",
    ):
        assert text in out
    assert max(map(len, out.splitlines())) > 80, "lines are neither wrapped nor cut"


@pytest.mark.parametrize(("which", "option"), [("built", "--run"), ("encoder", "--verify-digests")])
def test_an_option_of_the_other_kind_is_refused(trtc, request, which, option):
    said = trtc("inspect", request.getfixturevalue(which), option)
    assert said.code == 2
    assert f"{option} says nothing about" in said.err


def test_a_real_model_with_unnamed_symbols_can_be_inspected(trtc, ppocr_cls_path):
    report = trtc("inspect", ppocr_cls_path, "--json").json
    assert len({s["symbol"] for s in report["symbols"]}) == 3
