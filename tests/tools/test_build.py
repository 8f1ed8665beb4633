"""``trtc build``: its report, and the command lines that it suggests."""

from __future__ import annotations

import re
import shlex
from types import SimpleNamespace

import onnx
import pytest
from onnx import TensorProto, helper

from trtc.compiler import BuildOptions, build
from trtc.compiler.importer import load_model
from trtc.engines import read_manifest
from trtc.engines.host import this_host
from trtc.profiles import Profile, Range, UsageError
from trtc.runtime import load
from trtc.tools.foreign_flags import one_value_each

PADDED = ["--pad", "seq", "--pad", "batch", "--fill", "input_ids=0", "--fill", "attention_mask=0"]


def last_command(out: str) -> list[str]:
    (line,) = [line for line in out.splitlines() if line.startswith("next: ")]
    program, *words = shlex.split(line.removeprefix("next: "))
    assert program == "trtc"
    return words


@pytest.mark.parametrize("ranges", [[], ["--dim", "batch=1..2", "--buckets", "seq=4,8"]])
def test_the_command_that_is_suggested_runs(trtc, encoder, tmp_path, ranges):
    built = trtc("build", encoder, "-o", tmp_path / "a b.trtc", "--measure-seconds", "0", *ranges)
    assert built.code == 0, built.err
    assert trtc(*last_command(built.out)).code == 0


def test_a_model_without_symbols_needs_no_sizes(trtc, tmp_path, tiny_model):
    onnx.save(tiny_model(2, 3), tmp_path / "m.onnx")
    built = trtc("build", tmp_path / "m.onnx", "--measure-seconds", "0")
    assert "hint: " not in built.out
    assert last_command(built.out) == ["run", str(tmp_path / "m.trtc")]
    assert trtc(*last_command(built.out)).code == 0


def test_the_ranges_that_are_suggested_can_be_built(trtc, tmp_path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 1, "width", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    w = helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 48, 3], [1.0] * 144)
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "g", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), tmp_path / "m.onnx")
    built = trtc("build", tmp_path / "m.onnx", "--measure-seconds", "0")
    (hint,) = [line for line in built.out.splitlines() if line.startswith("hint: ")]
    words = shlex.split(built.out.splitlines()[built.out.splitlines().index(hint) + 1])
    assert words == ["--dim", "rows=1..8", "--dim", "width=48..192"]
    assert trtc("build", tmp_path / "m.onnx", "--measure-seconds", "0", *words).code == 0


def test_the_report_has_the_documented_fields(trtc, encoder, tmp_path):
    said = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0", "--json")
    assert set(said.json) == {"schema", "path", "cache_hit", "build_s", "notes", "manifest"}
    assert said.json["schema"] == "trtc.build/1"
    assert said.json["manifest"]["source"]["sha256"] == read_manifest(tmp_path / "x.trtc").source.sha256
    assert said.err == ""


def test_the_bundle_lies_beside_its_model_when_no_place_is_given(trtc, encoder, tmp_path):
    (tmp_path / "m.onnx").write_bytes(encoder.read_bytes())
    assert trtc("build", "--onnx", tmp_path / "m.onnx", "-q", "--measure-seconds", "0").out == ""
    assert (tmp_path / "m.trtc" / "manifest.json").is_file()


def test_each_table_is_printed_once(trtc, encoder, tmp_path):
    said = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0")
    assert (said.code, said.out.count("one run at the bucket")) == (0, 1)


def test_a_bundle_that_is_replaced_is_told(trtc, encoder, tmp_path, tiny_model):
    place, told = tmp_path / "x.trtc", "note: replaced the bundle that was there, built from "
    onnx.save(tiny_model("rows", 2), tmp_path / "tiny.onnx")
    words = ["-o", place, "--measure-seconds", "0"]
    assert told not in trtc("build", encoder, *words).out
    assert f"{told}the same model\n" in trtc("build", encoder, *words).out
    before = read_manifest(place).source.sha256
    assert (
        f"{told}another model (content digest {before[:12]}...)\n" in trtc("build", tmp_path / "tiny.onnx", *words).out
    )
    (place / "manifest.json").write_text("{")
    said = trtc("build", encoder, *words)
    assert (said.code, f"{told}a model that its manifest does not tell\n" in said.out) == (0, True), said.err


def test_an_older_bundle_stays_when_the_new_build_fails(trtc, bundle, encoder):
    before = (bundle / "manifest.json").read_bytes()
    said = trtc("build", encoder, "-o", bundle, "--pad", "seq", "--fill", "input_ids=0", "--fill", "attention_mask=1")
    assert said.code == 1
    assert (bundle / "manifest.json").read_bytes() == before
    assert trtc("run", bundle, "--all-profiles").code == 0


def test_a_second_build_of_the_same_comes_from_the_cache(trtc, encoder, tmp_path):
    words = ["--seed", "77", "--measure-seconds", "0", "--json"]
    first = trtc("build", encoder, "-o", tmp_path / "a.trtc", *words).json
    second = trtc("build", encoder, "-o", tmp_path / "b.trtc", *words).json
    assert (first["cache_hit"], second["cache_hit"]) == (False, True)
    assert first["manifest"] == second["manifest"]


def test_the_padding_that_was_tested_stands_beside_its_verdict(trtc, encoder, tmp_path):
    said = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0", *PADDED)
    (line,) = [line for line in said.out.splitlines() if line.startswith("padding seq on") and "batch" not in line]
    assert line.startswith("padding seq on the right, input_ids=0, attention_mask=0: shown in ")
    assert "rows along batch are independent: shown in " in said.out
    manifest = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0", *PADDED, "--json").json
    assert {rule["symbol"]: rule["side"] for rule in manifest["manifest"]["padding"]} == {
        "seq": "right",
        "batch": "rows",
    }


@pytest.mark.parametrize("verb", ["build", "check"])
def test_buckets_without_padding_are_no_mode(trtc, encoder, verb):
    said = trtc(verb, encoder, "--mode", "bucket", "--dim", "batch=1..2", "--dim", "seq=1..4")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("--mode bucket needs --pad")


def test_several_values_may_follow_one_polygraphy_option(trtc, encoder, tmp_path):
    shapes = ["--trt-min-shapes", "input_ids:[1,1]", "attention_mask:[1,1]", "--trt-opt-shapes=input_ids:[2,4]",
              "attention_mask:[2,4]", "--trt-max-shapes", "input_ids:[4,8]", "attention_mask:[4,8]"]  # fmt: skip
    said = trtc("build", *shapes, encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0")
    assert said.code == 0, said.err
    assert read_manifest(tmp_path / "x.trtc").ladder.profiles == (
        Profile("p0", {"batch": Range(1, 2, 4), "seq": Range(1, 4, 8)}),
    )


def test_a_word_after_a_polygraphy_option_that_is_no_shape_is_left_alone():
    words = ["--trt-min-shapes", "a:[1]", "m.onnx", "b:[1]", "--", "--trt-min-shapes", "a:[1]", "b:[1]"]
    assert one_value_each(words) == words


def test_a_build_with_other_options_is_not_called_the_same(trtc, encoder, tmp_path):
    words = [encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0", "--seed"]
    trtc("build", *words, "101")
    assert "a build of this model with other options took " in trtc("build", *words, "102").err
    assert "the same build took " in trtc("build", *words, "102").err


@pytest.mark.parametrize("name", ["x.onnx", "x.json", "x.toml", "x.npz", "x.plan", "x.ENGINE"])
def test_a_bundle_is_not_named_like_a_file(trtc, encoder, tmp_path, name):
    said = trtc("build", encoder, "-o", tmp_path / name, "--measure-seconds", "0")
    assert (said.code, said.out) == (2, "")
    assert "a bundle is a folder; name it NAME.trtc" in said.err
    assert f"-o {tmp_path / 'x.trtc'}" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_makes_the_folders_that_it_lies_in(trtc, encoder, tmp_path):
    assert trtc("build", encoder, "-o", tmp_path / "no" / "deep" / "x.trtc", "--measure-seconds", "0").code == 0
    assert (tmp_path / "no" / "deep" / "x.trtc" / "manifest.json").is_file()


def test_a_place_without_room_for_the_model_is_refused_before_engines_are_built(trtc, encoder, tmp_path, monkeypatch):
    needed = encoder.stat().st_size
    free = {"bytes": needed - 1}
    asked = []

    def usage(folder):
        asked.append(folder)
        return SimpleNamespace(free=free["bytes"])

    monkeypatch.setattr("trtc.compiler.bundle_space.shutil.disk_usage", usage)
    words = ("build", encoder, "-o", tmp_path / "no" / "x.trtc", "--measure-seconds", "0", "--no-cache")
    with monkeypatch.context() as patch:
        patch.setattr("trtc.compiler.pipeline.analyse", lambda *_: pytest.fail("work has begun"))
        said = trtc(*words)
    assert said.code == 4
    assert f"{needed - 1} bytes free, a bundle of this model takes {needed} bytes or more" in said.err
    assert (asked, list(tmp_path.iterdir())) == ([tmp_path], [])
    free["bytes"] = needed
    assert trtc(*words).code == 0


def test_without_measuring_one_call_at_a_time_has_all_processors(trtc, encoder, tmp_path):
    said = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0")
    execution = read_manifest(tmp_path / "x.trtc").execution
    assert (execution.slots, execution.threads) == (1, 0)
    assert "requests run exact, 1 call at a time, all threads: nothing was measured (--measure-seconds 0)" in said.out
    with load(tmp_path / "x.trtc") as session:
        loaded = session.explain().execution
        assert (loaded.slots, loaded.threads) == (1, this_host().threads)


def test_callers_are_an_option_of_the_build_and_part_of_its_key(trtc, encoder, tmp_path):
    words = ["build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0.05"]
    assert trtc(*words).code == 0
    said = trtc(*words, "--callers", "1", "--json")
    assert (said.code, said.json["cache_hit"]) == (0, False)
    manifest = read_manifest(tmp_path / "x.trtc")
    assert manifest.build.options["callers"] == "1"
    assert manifest.execution.slots == 1
    assert "--callers 1" in trtc("inspect", tmp_path / "x.trtc").out
    assert "build with --callers 1" not in manifest.execution.reason


@pytest.mark.parametrize("wrong", ["0", "-1", "many"])
def test_callers_that_cannot_be_are_refused(trtc, encoder, wrong):
    said = trtc("build", encoder, "--callers", wrong)
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert "--callers" in line
    with pytest.raises(UsageError, match="callers=-1; give 1 or more"):
        BuildOptions(callers=-1)


def test_how_long_a_build_took_is_what_its_stages_say(trtc, encoder, tmp_path):
    said = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0.05", "--no-cache")
    stages = re.findall(r"\(at (.*)\)", said.err)
    assert re.findall(r"built in (.*)", said.out) == [stages[-1]]


def test_the_time_of_a_build_begins_with_loading_its_model(encoder, tmp_path, monkeypatch):
    """The record of the cache, JSON and the stages count from the same start."""
    clock = iter(range(1, 10**6))
    monkeypatch.setattr("trtc.compiler.pipeline.time.monotonic", lambda: float(next(clock)))
    loaded = []

    def load_late(*args, **kwargs):
        for _ in range(1000):
            next(clock)
        loaded.append(1)
        return load_model(*args, **kwargs)

    monkeypatch.setattr("trtc.compiler.pipeline.load_model", load_late)
    report = build(encoder, tmp_path / "x.trtc", BuildOptions(measure_s=0.0, verify_s=1.0, use_cache=False))
    assert loaded
    assert report.build_s > 1000
