"""``trtc run``: inputs from files, generated inputs, and results."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trtc.engines import ValueDomain, encode_manifest, read_manifest

RUN_FIELDS = {"sizes", "profile", "run_sizes", "generated", "iterations", "first_s", "median_s", "outputs"}
ids = np.array([[1, 2, 3], [9, 0, 4]])
mask = np.array([[1, 1, 0], [1, 0, 1]])


def expected(encoder) -> np.ndarray:
    table = onnx.numpy_helper.to_array(onnx.load(encoder).graph.initializer[0])
    return (table[ids] * mask[..., None]).sum(axis=1)


def save(tmp_path, trtc, bundle, *words) -> dict[str, np.ndarray]:
    path = tmp_path / "answer.npz"
    said = trtc("run", bundle, *words, "--save-outputs", path)
    assert said.code == 0, said.err
    with np.load(path, allow_pickle=False) as answer:
        return dict(answer)


@pytest.mark.parametrize("spelling", ["npz", "input=", "input:", "loadInputs", "raw"])
def test_every_way_to_give_files_gives_the_same_answer(trtc, built, encoder, tmp_path, spelling):
    np.savez(tmp_path / "r.npz", input_ids=ids, attention_mask=mask.astype(">i8"))
    np.save(tmp_path / "ids.npy", np.asfortranarray(ids))
    np.save(tmp_path / "mask.npy", mask)
    (tmp_path / "mask.raw").write_bytes(mask.tobytes())
    a, b = tmp_path / "ids.npy", tmp_path / "mask.npy"
    words = {
        "npz": ["--inputs", tmp_path / "r.npz"],
        "input=": ["--input", f"input_ids={a}", "--input", f"attention_mask={b}"],
        "input:": ["--input", f"input_ids:{a}", "--input", f"attention_mask:{b}"],
        "loadInputs": [f"--loadInputs=input_ids:{a}", f"--load-inputs=attention_mask:{b}"],
        "raw": ["--input", f"input_ids={a}", "--input", f"attention_mask={b.with_suffix('.raw')}", "--dim", "batch=2",
                "--dim", "seq=3"],
    }[spelling]  # fmt: skip
    answer = save(tmp_path, trtc, built, *words)
    np.testing.assert_allclose(answer["pooled"], expected(encoder), rtol=1e-5)
    assert answer["hidden"].shape == (2, 3, 4)


def test_raw_values_of_another_size_are_refused(trtc, built, tmp_path):
    (tmp_path / "x.raw").write_bytes(b"12345")
    said = trtc("run", built, "--input", f"input_ids={tmp_path / 'x.raw'}", "--sizes", "batch=2,seq=3")
    assert said.code == 2
    assert "5 bytes of raw values, but 'input_ids' takes 48 at batch=2, seq=3" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ["--sizes", "batch=2,seq=5"],
        ["--dim", "batch=2", "--dim", "seq=5"],
        ["--shape", "input_ids[2,5],attention_mask[2,5]"],
        ["--shapes=input_ids:2x5,attention_mask:2x5"],
    ],
)
def test_every_spelling_of_sizes_gives_the_same_run(trtc, built, words):
    said = trtc("run", built, *words, "--json", "--iterations", "3")
    report = said.json
    assert report["schema"] == "trtc.run/1"
    assert set(report) == {"schema", "bundle", "engine", "runs", "memory", "saved"}
    (run,) = report["runs"]
    assert set(run) == RUN_FIELDS
    assert (run["sizes"], run["profile"], run["iterations"]) == ({"batch": 2, "seq": 5}, "p0", 3)
    assert run["first_s"] > 0 < run["median_s"]
    assert [(o["name"], o["shape"], o["nan"]) for o in run["outputs"]] == [
        ("hidden", [2, 5, 4], 0),
        ("pooled", [2, 4], 0),
    ]
    for output in run["outputs"]:
        assert output["min"] <= output["mean"] <= output["max"]


def test_all_profiles_run_at_their_opt_sizes(trtc, built):
    runs = trtc("run", built, "--all-profiles", "--json").json["runs"]
    assert [(run["profile"], run["sizes"]) for run in runs] == [
        ("p0", {"batch": 4, "seq": 8}),
        ("p1", {"batch": 4, "seq": 16}),
    ]


def test_outputs_are_selected_in_the_order_asked(trtc, built):
    said = trtc("run", built, "--sizes", "batch=1,seq=2", "--outputs", "pooled,hidden", "--json")
    assert [o["name"] for o in said.json["runs"][0]["outputs"]] == ["pooled", "hidden"]


def test_a_padded_run_says_what_it_was_padded_to(trtc, bundle):
    manifest = read_manifest(bundle)
    execution = msgspec.structs.replace(manifest.execution, mode="bucket")
    (bundle / "manifest.json").write_bytes(encode_manifest(msgspec.structs.replace(manifest, execution=execution)))
    said = trtc("run", bundle, "--sizes", "batch=1,seq=3", "--json")
    assert said.json["runs"][0]["run_sizes"] == {"batch": 4, "seq": 8}
    assert "run at batch=4, seq=8" in trtc("run", bundle, "--sizes", "batch=1,seq=3").out


def test_generated_values_stay_inside_what_was_proved(trtc, bundle, tmp_path):
    manifest = read_manifest(bundle)
    domain = {"input_ids": ValueDomain(low=7, high=7), "attention_mask": ValueDomain(low=0, high=1, rows_nonzero=True)}
    evidence = tuple(
        msgspec.structs.replace(e, domain=domain if e.kind == "padding" else {}) for e in manifest.evidence
    )
    (bundle / "manifest.json").write_bytes(encode_manifest(msgspec.structs.replace(manifest, evidence=evidence)))
    pooled = save(tmp_path, trtc, bundle, "--sizes", "batch=4,seq=1")["pooled"]
    said = trtc("run", bundle, "--sizes", "batch=4,seq=1")
    assert "input 'input_ids' was generated: 7..7" in said.err
    assert (pooled == pooled[0]).all()
    assert pooled.any(), "every row of the mask holds a 1"


def test_a_range_of_the_user_comes_first(trtc, built):
    said = trtc("run", built, "--sizes", "batch=1,seq=2", "--val-range", "input_ids:[3,3]", "--json")
    assert said.json["runs"][0]["generated"]["input_ids"] == "3..3 (as given)"


def test_the_same_seed_gives_the_same_values(trtc, built, tmp_path):
    words = ["--sizes", "batch=3,seq=6", "--seed"]
    first, again, other = (save(tmp_path, trtc, built, *words, seed)["hidden"] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_missing_input_is_generated_only_when_sizes_are_stated(trtc, built, request_file):
    request = request_file(input_ids=ids)
    assert trtc("run", built, "--inputs", request).code == 2
    said = trtc("run", built, "--inputs", request, "--sizes", "batch=2,seq=3", "--json")
    assert set(said.json["runs"][0]["generated"]) == {"attention_mask"}


def test_explain_tells_the_engine_and_the_profile(trtc, built):
    out = trtc("run", built, "--sizes", "batch=1,seq=9", "--explain").out
    assert "+ cpu: fits" in out
    assert "profile p1 at batch=1, seq=9" in out


NAMES = ["file", "../x", "a/b:0.π é", "100%"]


@pytest.fixture(scope="session")
def oddly_named(trtc, tmp_path_factory):
    """A bundle whose outputs have names that no file may have; each is its input."""
    folder = tmp_path_factory.mktemp("odd")
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows"])  # noqa: E731
    nodes = [helper.make_node("Neg", [f"in {i}"], [name]) for i, name in enumerate(NAMES)]
    graph = helper.make_graph(nodes, "g", [value(f"in {i}") for i in range(4)], [value(name) for name in NAMES])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), folder / "m.onnx")
    said = trtc("build", folder / "m.onnx", "-o", folder / "m.trtc", "--measure-seconds", "0", "--dim", "rows=1..4")
    assert said.code == 0, said.err
    return folder / "m.trtc"


def test_outputs_of_any_name_are_saved_inside_the_file(trtc, oddly_named, tmp_path):
    given = {f"in {i}": np.full(2, i, np.float32) for i in range(4)}
    np.savez(tmp_path / "r.npz", **given)
    answer = save(tmp_path, trtc, oddly_named, "--inputs", tmp_path / "r.npz")
    assert sorted(answer) == sorted(["file", "..%2Fx", "a%2Fb:0.π é", "100%25"])
    assert (answer["a%2Fb:0.π é"] == -2).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["answer.npz", "r.npz"]


def test_a_text_that_is_one_output_is_not_split(trtc, oddly_named):
    said = trtc("run", oddly_named, "--sizes", "rows=2", "--outputs", "a/b:0.π é", "--outputs", "file,100%", "--json")
    assert [o["name"] for o in said.json["runs"][0]["outputs"]] == ["a/b:0.π é", "file", "100%"]


def test_saving_replaces_a_file_only_with_a_whole_one(trtc, built, tmp_path):
    path = tmp_path / "answer.npz"
    path.write_text("old")
    assert trtc("run", built, "--sizes", "batch=99,seq=1", "--save-outputs", path).code == 2
    assert path.read_text() == "old"


def test_nan_in_results_is_counted_and_is_null_in_json(trtc, tmp_path):
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows"])  # noqa: E731
    graph = helper.make_graph([helper.make_node("Log", ["x"], ["y"])], "g", [value("x")], [value("y")])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), tmp_path / "log.onnx"
    )
    assert trtc("build", tmp_path / "log.onnx", "--measure-seconds", "0").code == 0
    np.savez(tmp_path / "r.npz", x=np.array([-1, 0, 1], np.float32))
    said = trtc("run", tmp_path / "log.trtc", "--inputs", tmp_path / "r.npz", "--json")
    (output,) = json.loads(said.out, parse_constant=pytest.fail)["runs"][0]["outputs"]
    assert output | {"name": "y", "nan": 1, "min": None, "mean": None, "max": 0.0} == output


def test_generated_values_that_the_model_refuses_are_told_with_the_options_to_type(trtc, tmp_path):
    info = helper.make_tensor_value_info
    table = helper.make_tensor("table", TensorProto.FLOAT, [1, 2], [1.0, 2.0])
    nodes = [helper.make_node("Sub", ["my rate", "low"], ["at"]), helper.make_node("Gather", ["table", "at"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [info("my rate", TensorProto.INT64, ["n"])],
        [info("y", TensorProto.FLOAT, ["n", 2])],
        [table, helper.make_tensor("low", TensorProto.INT64, [], [16000])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    made = trtc("build", tmp_path / "m.onnx", "-o", tmp_path / "m.trtc", "--measure-seconds", "0")
    assert made.code == 0, made.err
    said = trtc("run", tmp_path / "m.trtc", "--sizes", "n=3")
    assert said.code == 1
    advice = 'give real ones with --inputs FILE.npz, or say what the model takes: --val-range "my rate":[LOW,HIGH]'
    assert said.err.strip().endswith(advice)
    assert trtc("run", tmp_path / "m.trtc", "--sizes", "n=3", "--val-range", '"my rate":[16000,16000]').code == 0
