"""``trtc inspect``: models are not run unasked, bundles are shown from their manifest alone."""

from __future__ import annotations

import hashlib
import re
import shlex

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trtc.engines import read_manifest
from trtc.runtime import load
from trtc.tools.recorded import options_text
from trtc.tools.source_names import source_digests


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
    assert set(report["source"]) == {"file_sha256", "sha256", "size_bytes", "ir_version", "opsets", "producer", "nodes"}


def test_runs_show_the_sizes_and_how_outputs_follow(trtc, encoder):
    report = trtc("inspect", encoder, "--run", "--json").json
    assert report["ran"] is True
    assert report["sizes"]["seq"] == {"min": 1, "multiple_of": 1, "max": None, "reason": "", "fails_at": None}
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
        "padding batch by repeating the last row\n",
        "padding seq on the right, attention_mask=0, input_ids=0: shown in ",
        "while input_ids is 0..9\n",
        "876 B  yes       chosen\ncpu: fits: cpu with onnxruntime",
        "ONNX Runtime CPU, optimizations off",
        "requests run exact, 1 call at a time, all threads: nothing was measured",
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


def test_no_sizes_are_made_up_for_a_model_that_was_not_run(trtc, encoder):
    assert trtc("inspect", encoder, "--json").json["build_command"] == shlex.join(["trtc", "build", str(encoder)])
    out = trtc("inspect", encoder).out
    assert f"\n  {shlex.join(['trtc', 'inspect', str(encoder), '--run'])}\n" in out
    assert "--dim" not in out


def test_the_ranges_of_the_command_stay_inside_what_runs(trtc, tmp_path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "width"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    table = helper.make_tensor("t", TensorProto.FLOAT, [1, 50], [1.0] * 50)
    ends = [helper.make_tensor(n, TensorProto.INT64, [1], [v]) for n, v in (("zero", 0), ("axis", 1))]
    nodes = [
        helper.make_node("Shape", ["x"], ["size"], start=1),
        helper.make_node("Slice", ["t", "zero", "size", "axis"], ["row"]),
        helper.make_node("Add", ["x", "row"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [table, *ends])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), tmp_path / "m.onnx")
    words = shlex.split(trtc("inspect", tmp_path / "m.onnx", "--run", "--json").json["build_command"])
    assert words[3:] == ["--dim", "n=1..8", "--dim", "width=1..50"]
    assert trtc(*words[1:], "--measure-seconds", "0").code == 0


def test_options_that_the_runs_needed_are_in_the_command(trtc, encoder):
    said = trtc("inspect", encoder, "--run", "--val-range", "input_ids:[0,3]", "--json")
    assert "--val-range 'input_ids:[0,3]'" in said.json["build_command"]


def test_a_name_that_cannot_be_typed_is_told_with_the_one_that_stands_for_it(trtc, tmp_path, tiny_model):
    onnx.save(tiny_model("seq,len=1", 2), tmp_path / "m.onnx")
    said = trtc("inspect", tmp_path / "m.onnx")
    assert "dim name 'seq,len=1' cannot be typed in --dim; the symbol is called 'seq_len_1'" in said.err


def test_an_unknown_rank_is_called_so(trtc, tmp_path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), tmp_path / "m.onnx")
    assert "output y: float [...]  (rank unknown)" in trtc("inspect", tmp_path / "m.onnx").out


def test_the_options_of_a_bundle_can_be_pasted(trtc, built, encoder, tmp_path):
    lines = trtc("inspect", built).out.splitlines()
    words = shlex.split(lines[lines.index("options:") + 1])
    again = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0", *words, "--json")
    assert again.code == 0, again.err
    assert again.json["manifest"]["ladder"] == trtc("inspect", built, "--json").json["manifest"]["ladder"]
    assert again.json["cache_hit"] is True


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("fill", "in put=0 b=1", ["--fill", "in put=0", "--fill", "b=1"]),
        ("dim", '"a b"=1..2 c=3', ["--dim", '"a b"=1..2', "--dim", "c=3"]),
        ("shape", "a[1..2,3],b[4] c[5]", ["--shape", "a[1..2,3],b[4]", "--shape", "c[5]"]),
        ("trt-min-shapes", "a:[1, 2] b c:[3]", ["--trt-min-shapes", "a:[1, 2]", "--trt-min-shapes", "b c:[3]"]),
        ("val-range", "a b:[0, 1] c:[2,3]", ["--val-range", "a b:[0, 1]", "--val-range", "c:[2,3]"]),
        ("trtexec", "--shapes=a b:1x2 --profile=1", ["--shapes=a b:1x2", "--profile=1"]),
        ("pad", "seq batch:rows", ["--pad", "seq", "--pad", "batch:rows"]),
        ("accept-padding-error", "yes", ["--accept-padding-error"]),
        ("samples", "2 paths", []),
    ],
)
def test_recorded_options_are_told_apart(name, text, words):
    assert shlex.split(options_text({name: text})) == words


def test_the_digest_that_is_shown_first_is_that_of_the_file(trtc, encoder, built, tmp_path):
    wanted = hashlib.sha256(encoder.read_bytes()).hexdigest()
    content = trtc("inspect", encoder, "--json").json["source"]["sha256"]
    assert trtc("inspect", encoder, "--json").json["source"]["file_sha256"] == wanted != content
    trtc("inspect", built, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for shown in (trtc("inspect", encoder).out, trtc("inspect", built).out, page):
        assert 0 <= shown.index(wanted) < shown.index(content)
        assert "content digest: model file and external data" in shown


def test_a_bundle_that_does_not_hold_the_digest_of_the_file_shows_the_other(built):
    manifest = msgspec.structs.replace(read_manifest(built), original=None)
    assert source_digests(manifest) == (("content digest: model file and external data", manifest.source.sha256),)


def test_a_bundle_that_is_not_there_is_called_a_bundle(trtc, tmp_path):
    said = trtc("inspect", tmp_path / "nope.trtc")
    assert said.code == 2
    assert "nope.trtc: there is no bundle; give the path of a NAME.trtc folder" in said.err


def test_how_requests_run_and_what_they_were_probed_with_are_said_once(trtc, encoder, tmp_path):
    samples = tmp_path / "samples"
    samples.mkdir()
    for i in range(2):
        ids = np.full((1, 4), 3 + i, np.int64)
        np.savez(samples / f"{i}.npz", input_ids=ids, attention_mask=np.ones_like(ids))
    bundle = tmp_path / "b.trtc"
    words = ["--dim", "batch=1..2", "--buckets", "seq=4,8", "--pad", "seq", "--pad", "batch", "--fill", "input_ids=0"]
    words += ["--fill", "attention_mask=0", "--samples", samples, "--threads", "2", "--measure-seconds", "0.05"]
    built = trtc("build", encoder, *words, "-o", bundle)
    assert built.code == 0, built.err
    out = trtc("inspect", bundle).out
    (line,) = [line for line in out.splitlines() if line.startswith("values of these runs: ")]
    assert line.startswith("values of these runs: 2 real samples, cut or repeated along the symbols")
    assert line.count("real sample") == 1
    (line,) = [line for line in out.splitlines() if line.startswith("requests run ")]
    assert line in built.out
    said = re.findall(r"\d+ calls? at (?:once|a time), \d+ threads?", line)
    assert len(said) == line.count(" at once") + line.count(" at a time") == 1
    assert "calls/s" in line
    assert "a lone call takes" in line
    with load(bundle, slots=2) as session:
        assert str(session.explain()).count(" at once") == 1
