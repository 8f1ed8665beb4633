"""What a user does wrong becomes one clear message and the documented exit code, never a traceback."""

from __future__ import annotations

import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234\n"


@pytest.mark.parametrize(
    ("words", "code", "fragment"),
    [
        pytest.param(["--target", "null"], 2, "needs a range for every symbol, but 'batch', 'seq'", id="no-ranges"),
        pytest.param(["--dim", "sequ=1..3"], 2, "did you mean 'seq'?", id="unknown-symbol"),
        pytest.param(["--shape", "input_id[1,2]"], 2, "did you mean 'input_ids'?", id="unknown-input"),
        pytest.param(["--dim", "seq=8:4:16"], 2, "min 8, opt 4, max 16", id="min-above-opt"),
        pytest.param(["--min-shapes=input_ids:4x1,attention_mask:4x1", "--opt-shapes=input_ids:2x4,attention_mask:2x4",
                      "--max-shapes=input_ids:8x8,attention_mask:8x8"],
                     2, "min 4, opt 2, max 8", id="min-above-opt-in-kebab-case"),
        pytest.param(["--minShapes=input_ids:4x1,attention_mask:4x1", "--optShapes=input_ids:2x4,attention_mask:2x4",
                      "--maxShapes=input_ids:8x8,attention_mask:8x8"],
                     2, "min 4, opt 2, max 8", id="min-above-opt-in-camel-case"),
        pytest.param(["--shapes=input_ids:2x3,attention_mask:2x4"], 2, "share the symbol 'seq'", id="contradiction"),
        pytest.param(["--pad", "seq"], 2, "no fill for 'input_ids'", id="no-fill"),
        pytest.param(["--target", "cpi"], 2, "did you mean 'cpu'?", id="unknown-target"),
        pytest.param(["--measure-seconds", "nan"], 2, "not a finite number", id="nan-seconds"),
        pytest.param(["--sampels", "x"], 2, "'--samples'", id="unknown-option"),
        pytest.param(["--samples", "nowhere.npz"], 2, "no such file or folder", id="no-samples"),
        pytest.param(["-o", "{model}"], 2, "cannot replace its model", id="output-is-the-model"),
        pytest.param(["-o", "{file}"], 2, "a file is in the way", id="output-is-a-file"),
        pytest.param(["-o", "{file}/x.trtc"], 2, "so nothing can lie in it", id="output-below-a-file"),
        pytest.param(["-o", "{foreign}"], 2, "holds something else, not a bundle", id="output-is-a-foreign-folder"),
        pytest.param(["--pad", "seq", "--fill", "input_ids=0", "--fill", "attention_mask=1"], 1,
                     "padding seq is refused: output 'pooled' moved by", id="padding-that-moves-answers"),
    ],
)  # fmt: skip
def test_a_build_that_cannot_be_right_is_refused(  # noqa: PLR0917 (fixtures come by name)
    trtc, encoder, tmp_path, words, code, fragment
):
    model = shutil.copy(encoder, tmp_path / "model.onnx")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine.txt").write_text("mine")
    places = {"model": model, "file": tmp_path / "file", "foreign": tmp_path / "foreign"}
    said = trtc("build", model, *(word.format(**places) for word in words))
    assert (said.code, said.out) == (code, "")
    assert fragment in said.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "foreign", "model.onnx"]


@pytest.mark.parametrize("verb", ["build", "check", "inspect"])
@pytest.mark.parametrize(
    ("content", "code", "fragment"),
    [
        pytest.param(None, 2, "no such file", id="missing"),
        pytest.param(b"", 3, "an empty file", id="empty"),
        pytest.param(LFS, 3, "a git-LFS pointer to a file of 1234 bytes", id="lfs"),
        pytest.param(b"<html>login</html>", 3, "an HTML page", id="html"),
        pytest.param("cut", 3, "cut short", id="truncated"),
    ],
)
def test_what_is_no_model_is_named(  # noqa: PLR0917 (fixtures come by name)
    trtc, encoder, tmp_path, verb, content, code, fragment
):
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(encoder.read_bytes()[:100] if content == "cut" else content)
    said = trtc(verb, path)
    assert said.code == code
    assert fragment in said.err


def test_a_folder_is_no_model(trtc, tmp_path):
    (tmp_path / "encoder.onnx").write_bytes(b"x")
    said = trtc("build", tmp_path)
    assert said.code == 2
    assert "it holds encoder.onnx: give one of them" in said.err


@pytest.mark.parametrize("verb", ["build", "check"])
def test_a_bundle_is_no_model(trtc, built, tmp_path, verb):
    said = trtc(verb, built, *(["-o", tmp_path / "q.trtc"] if verb == "build" else []))
    assert (said.code, said.out) == (2, "")
    assert "a folder that holds a bundle, not a model" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["run", "{path}"], ["bench", "{path}"], ["compare", "{path}", "{model}"], ["diff", "{path}", "{path}"],
        ["inspect", "{folder}"], ["plan", "--from-bundle", "{path}", "--traffic", "t.jsonl"],
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("kind", "says"), [("model", "is a file, a bundle is a folder"), ("folder", "is no bundle: it has no manifest")]
)
def test_what_is_no_bundle_is_wrong_use(trtc, encoder, tmp_path, words, kind, says):  # noqa: PLR0917 (fixtures come by name)
    if words[0] == "inspect":
        says = "is no bundle"
    path = encoder if kind == "model" else tmp_path
    said = trtc(*(word.format(path=path, folder=tmp_path, model=encoder) for word in words))
    assert (said.code, said.out) == (2, "")
    assert says in said.err


def test_a_half_written_bundle_is_a_broken_one_and_no_wrong_use(trtc, tmp_path):
    (tmp_path / "blobs").mkdir()
    said = trtc("run", tmp_path)
    assert said.code == 1
    assert "half-written" in said.err


def test_external_data_outside_of_the_model_folder_is_refused(trtc, tmp_path):
    np.ones(300, np.float32).tofile(tmp_path / "outside.bin")
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[300], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="../outside.bin")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 300]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    (tmp_path / "inner").mkdir()
    model = tmp_path / "inner" / "model.onnx"
    model.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    said = trtc("build", model)
    assert said.code == 3
    assert "../outside.bin" in said.err


def test_nan_in_samples_is_refused(trtc, tmp_path, tiny_model, request_file):
    model = tmp_path / "model.onnx"
    onnx.save(tiny_model("rows", 2), model)
    said = trtc("build", model, "--samples", request_file(x=np.array([[1, np.nan]], np.float32)))
    assert said.code == 2
    assert "input 'x' holds NaN at 1 of 2 positions" in said.err


@pytest.mark.parametrize("verb", ["build", "check", "run"])
@pytest.mark.parametrize(
    ("flag", "fragment"),
    [
        ("--fp16", "convert the model to that precision"),
        ("--bf16", "convert the model to that precision"),
        ("--best", "convert the model to that precision"),
        ("--int8", "QuantizeLinear"),
        ("--fp8", "QuantizeLinear"),
        ("--calib=cache", "QuantizeLinear"),
        ("--layerPrecisions=a:fp16", "Cast nodes"),
        ("--precision-constraints", "Cast nodes"),
        ("--sparsity=enable", "nothing in its place"),
        ("--refit", "build again when weights change"),
        ("--useProfile=1", "picks the profile of every request"),
        ("--warmUp=200", "trtc bench BUNDLE"),
    ],
)
def test_flags_whose_effect_is_not_there_are_refused_with_advice(trtc, verb, flag, fragment):
    said = trtc(verb, "model", flag)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(flag.partition("=")[0] + ": ")
    assert fragment in said.err


@pytest.mark.parametrize("flag", ["--useCudaGraph", "--stronglyTyped", "--no-data-transfers", "--explicitBatch"])
def test_flags_without_effect_are_accepted(trtc, built, flag):
    assert trtc("run", built, flag, "--sizes", "batch=1,seq=2").code == 0


ids = np.zeros((2, 3), np.int64)


@pytest.mark.parametrize(
    ("arrays", "fragment"),
    [
        pytest.param({"input_ids": ids}, "input 'attention_mask' is missing", id="missing"),
        pytest.param({"input_idz": ids}, "did you mean 'input_ids'?", id="extra"),
        pytest.param({"input_ids": ids.astype(np.int32), "attention_mask": ids}, "takes int64; convert it", id="dtype"),
        pytest.param({"input_ids": ids[0], "attention_mask": ids}, "shape [3], but the model takes", id="rank"),
        pytest.param({"input_ids": ids, "attention_mask": ids[:, :2]}, "they must be equal", id="contradiction"),
        pytest.param({"input_ids": ids.repeat(9, 1), "attention_mask": ids.repeat(9, 1)},
                     "seq=27, but this bundle serves seq 1..8 or 1..16", id="too-large"),
        pytest.param({"input_ids": np.array([None], object)}, "which are never loaded", id="pickle"),
    ],
)  # fmt: skip
def test_a_request_that_does_not_fit_is_refused(trtc, built, request_file, arrays, fragment):
    said = trtc("run", built, "--inputs", request_file(**arrays))
    assert (said.code, said.out) == (2, "")
    assert fragment in said.err


@pytest.mark.parametrize(
    ("words", "code", "fragment"),
    [
        pytest.param([], 2, "no size for batch (1..4), seq (1..8 or 1..16)", id="no-sizes"),
        pytest.param([], 2, "--all-profiles", id="no-sizes-names-the-way-for-closed-ladders"),
        pytest.param(["--sizes", "batch=2"], 2, "no size for seq", id="one-size-missing"),
        pytest.param(["--sizes", "batch=2,sec=3"], 2, "did you mean 'seq'?", id="unknown-symbol"),
        pytest.param(["--sizes", "batch=1..2,seq=3"], 2, "a run needs one size", id="range"),
        pytest.param(["--sizes", "batch=9,seq=3"], 2, "batch=9, but this bundle serves batch 1..4", id="too-large"),
        pytest.param(["--all-profiles", "--sizes", "batch=1,seq=1"], 2, "states all sizes itself", id="both"),
        pytest.param(["--all-profiles", "--max-memory", "1K"], 4, "needed, the budget is 1 KiB; raise", id="budget"),
        pytest.param(["--all-profiles", "--max-memory", "lots"], 2, "is no memory size", id="no-memory-size"),
        pytest.param(["--all-profiles", "--engine", "gpu"], 2, "did you mean 'cpu'?", id="unknown-engine"),
        pytest.param(["--all-profiles", "--outputs", "poled"], 2, "did you mean 'pooled'?", id="unknown-output"),
        pytest.param(["--all-profiles", "--val-range", "input:[0,1]"], 2, "unknown input 'input'", id="unknown-range"),
        pytest.param(["--sizes", "batch=1,seq=1", "--save-outputs", "no/x.npz"], 2, "no folder", id="nowhere-to-save"),
        pytest.param(["--input", "nowhere.npy"], 2, "--input NAME=FILE.npy", id="file-without-a-name"),
        pytest.param(["--input", "input_ids=nowhere.npy"], 2, "no such file", id="no-file"),
    ],
)  # fmt: skip
def test_a_run_that_says_too_little_or_too_much_is_refused(trtc, built, words, code, fragment):
    said = trtc("run", built, *words)
    assert (said.code, said.out) == (code, "")
    assert fragment in said.err


def test_an_open_bundle_does_not_offer_its_profiles(trtc, built_open):
    said = trtc("run", built_open)
    assert said.code == 2
    assert "--all-profiles" not in said.err


@pytest.mark.parametrize("words", [["run", "{0}", "--all-profiles"], ["inspect", "{0}", "--verify-digests"],
                                   ["verify", "{0}", "--model", "{1}"]])  # fmt: skip
def test_an_altered_bundle_fails_before_its_engine_is_opened(trtc, bundle, encoder, words):
    for blob in (bundle / "blobs").iterdir():
        data = bytearray(blob.read_bytes())
        data[20] ^= 1
        blob.write_bytes(data)
    said = trtc(*(word.format(bundle, encoder) for word in words))
    assert (said.code, said.out) == (1, "")
    assert "the manifest says" in said.err


@pytest.mark.parametrize("words", [["run", "{0}", "--all-profiles"], ["inspect", "{0}"]])
@pytest.mark.parametrize("part", ["blobs", "manifest"])
def test_a_truncated_bundle_fails(trtc, bundle, words, part):
    for path in (bundle / "blobs").iterdir() if part == "blobs" else [bundle / "manifest.json"]:
        path.write_bytes(path.read_bytes()[:100])
    said = trtc(*(word.format(bundle) for word in words))
    assert (said.code, said.out) == (1, "")


def test_nothing_at_the_path_of_a_bundle_is_wrong_use(trtc, tmp_path):
    said = trtc("run", tmp_path / "nowhere.trtc")
    assert said.code == 2
    assert "there is nothing" in said.err


@pytest.mark.parametrize("kind", ["file", "shared"])
def test_a_cache_folder_that_cannot_be_trusted_does_not_fit(trtc, encoder, tmp_path, monkeypatch, kind):
    folder = tmp_path / "cache"
    if kind == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    monkeypatch.setenv("TRTC_CACHE_DIR", str(folder))
    said = trtc("build", encoder, "-o", tmp_path / "x.trtc", "--measure-seconds", "0")
    assert said.code == 4
    assert "set TRTC_CACHE_DIR to a folder of your own" in said.err
    assert not (tmp_path / "x.trtc").exists()


def test_an_unknown_verb_offers_the_nearest(trtc):
    said = trtc("rum")
    assert said.code == 2
    assert "did you mean 'run'?" in said.err


@pytest.mark.parametrize("verb", ["serve"])
def test_a_verb_that_is_planned_says_that_it_is_not_there_yet(trtc, verb):
    said = trtc(verb, "model.onnx")
    assert said.code == 2
    assert f"'trtc {verb}' is not there yet" in said.err


def test_a_name_that_was_cut_at_a_comma_is_told_with_its_quotes(trtc, tmp_path, tiny_model):
    model = tiny_model("n", 2)
    old, new = model.graph.input[0].name, "in put:0,a"
    model.graph.input[0].name = new
    for node in model.graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
    onnx.save(model, tmp_path / "m.onnx")
    said = trtc("build", tmp_path / "m.onnx", "--shapes", "in put:0,a:2x2")
    assert said.code == 2
    assert "did you mean 'in put:0,a'?" in said.err
    assert 'put the name in double quotes: "in put:0,a"' in said.err
    assert trtc("build", tmp_path / "m.onnx", "--shapes", '"in put:0,a":2x2', "--measure-seconds", "0").code == 0


def test_an_input_that_shares_its_symbols_needs_no_shape(trtc, built):
    assert trtc("run", built, "--shapes=input_ids:2x5").code == 0


def test_bundles_of_different_inputs_are_not_compared_and_both_are_listed(trtc, built, tiny_model, tmp_path):
    onnx.save(tiny_model("rows"), tmp_path / "other.onnx")
    assert trtc("build", tmp_path / "other.onnx", "--measure-seconds", "0").code == 0
    for one, two, inputs in (
        (built, tmp_path / "other.trtc", "'input_ids', 'attention_mask' and 'x'"),
        (tmp_path / "other.trtc", built, "'x' and 'input_ids', 'attention_mask'"),
    ):
        said = trtc("compare", one, two)
        assert said.code == 2
        assert f"have different inputs: {inputs}; compare" in said.err


@pytest.mark.parametrize("value", [10, -11])
def test_a_value_beside_those_that_the_bundle_was_built_with_is_named_with_input_and_range(
    trtc, built, tmp_path, value
):
    ids = np.array([[1, value, 2]])
    np.savez(tmp_path / "bad.npz", input_ids=ids, attention_mask=np.ones_like(ids))
    said = trtc("run", built, "--inputs", tmp_path / "bad.npz")
    assert (said.code, said.out) == (2, "")
    assert f"input 'input_ids' holds {value}, this bundle was built with values of 0..9; give values" in said.err


def test_a_bundle_that_holds_no_range_says_what_the_build_ran_with(trtc, encoder, tmp_path):
    assert trtc("build", encoder, "-o", tmp_path / "any.trtc", "--measure-seconds", "0").code == 0
    ids = np.array([[1, 10, 2]])
    np.savez(tmp_path / "bad.npz", input_ids=ids, attention_mask=np.ones_like(ids))
    said = trtc("run", tmp_path / "any.trtc", "--inputs", tmp_path / "bad.npz")
    assert (said.code, said.out) == (1, "")
    assert "the build ran it with values generated: input_ids in 0..9 (indexes a table of 10 rows)" in said.err


def test_a_value_that_runs_is_not_blamed(trtc, built, tmp_path):
    ids = np.array([[1, -1, 2]])  # counted from the end of the table
    np.savez(tmp_path / "odd.npz", input_ids=ids, attention_mask=np.ones_like(ids))
    assert trtc("run", built, "--inputs", tmp_path / "odd.npz").code == 0
