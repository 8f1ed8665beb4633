"""``polygraphy run`` as its users type it, with a bundle as one of the runners."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from polygraphy.comparator import RunResults

SIZES = ["--input-shapes", "input_ids:[2,5]", "attention_mask:[2,5]"]
VALUES = ["--val-range", "input_ids:[0,9]", "attention_mask:[1,1]"]


def polygraphy(folder: Path, *words: object) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name("polygraphy")), *(str(word) for word in words)]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def altered(trtc, encoder, tmp_path_factory):
    """A bundle of the same model with one weight changed."""
    folder = tmp_path_factory.mktemp("altered")
    model = onnx.load(encoder)
    table = next(t for t in model.graph.initializer if t.name == "table")
    values = numpy_helper.to_array(table).copy()
    values[3] += 0.01
    table.CopyFrom(numpy_helper.from_array(values, "table"))
    onnx.save(model, folder / "model.onnx")
    said = trtc("build", folder / "model.onnx", "-o", folder / "altered.trtc", "--measure-seconds", "0")
    assert said.code == 0, said.err
    return folder / "altered.trtc"


def test_a_bundle_passes_beside_onnx_runtime_in_several_iterations_that_are_saved(encoder, built, tmp_path):
    mode = ["--trtc-profile", "p1", "--trtc-mode", "bucket"]
    code, words = polygraphy(
        tmp_path, "run", encoder, "--onnxrt", "--trtc", "--trtc-bundle", built, *mode, *SIZES, *VALUES,
        "--iterations", "3", "--check-error-stat", "max", "--atol", "1e-6", "--save-outputs", "out.json",
    )  # fmt: skip
    assert code == 0, words
    assert "Passed: 3/3 iterations" in words
    results = RunResults.load(str(tmp_path / "out.json"))
    (_, plain), (name, ours) = results.items()
    assert name.startswith("trtc-runner")
    assert [list(iteration.keys()) for iteration in ours] == [["hidden", "pooled"]] * 3
    for one, other in zip(plain, ours, strict=True):
        np.testing.assert_allclose(one["hidden"], other["hidden"], atol=1e-6)


def test_a_bundle_with_an_altered_weight_fails_and_the_outputs_are_named(encoder, altered, tmp_path):
    code, words = polygraphy(
        tmp_path, "run", encoder, "--onnxrt", "--trtc", "--trtc-bundle", altered, *SIZES, *VALUES, "--iterations", "4"
    )
    assert code == 1
    assert "FAILED | simple | Mismatched outputs: ['hidden', 'pooled']" in words
    assert "Traceback" not in words


def test_a_saved_bundle_answers_to_saved_inputs_and_outputs(encoder, built, tmp_path):
    saved = ["--save-inputs", "in.json", "--save-outputs", "out.json"]
    code, words = polygraphy(tmp_path, "run", encoder, "--onnxrt", *SIZES, *VALUES, "--iterations", "2", *saved)
    assert code == 0, words
    loaded = ["--load-inputs", "in.json", "--load-outputs", "out.json"]
    code, words = polygraphy(tmp_path, "run", encoder, "--trtc", "--trtc-bundle", built, *loaded)
    assert code == 0, words
    assert "Passed: 2/2 iterations" in words


def test_without_a_bundle_the_model_is_compiled_and_the_bundle_kept(trtc, encoder, tmp_path):
    code, words = polygraphy(
        tmp_path, "run", encoder, "--trtc", "--onnxrt", "--trtc-save-bundle", "kept.trtc", *SIZES, *VALUES
    )
    assert code == 0, words
    assert trtc("run", tmp_path / "kept.trtc", "--sizes", "batch=1,seq=3").code == 0


def test_the_generated_script_holds_what_was_asked_for(encoder, built, tmp_path):
    options = ["--trtc-bundle", built, "--trtc-mode", "exact", "--trtc-profile", "p0"]
    code, words = polygraphy(tmp_path, "run", encoder, "--trtc", *options, "--gen-script", "run.py")
    assert code == 0, words
    script = (tmp_path / "run.py").read_text()
    assert "from trtc.tools.polygraphy_plugin import TrtcRunner" in script
    assert f"TrtcRunner({str(built)!r}, profile='p0', mode='exact')" in script


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(["--trtc-profile", "p9"], "p9", id="unknown-profile"),
        pytest.param(["--trtc-engine", "gpu"], "gpu", id="unknown-engine"),
        pytest.param(["--trtc-bundle", "none.trtc"], "none.trtc", id="no-such-bundle"),
        pytest.param(["--input-shapes", "input_ids:[2,99]", "attention_mask:[2,99]"], "seq=99", id="sizes-not-served"),
    ],
)
def test_a_mistake_is_one_line_and_no_traceback(encoder, built, tmp_path, options, says):
    code, words = polygraphy(tmp_path, "run", encoder, "--trtc", "--trtc-bundle", built, *SIZES, *options)
    assert code == 1
    (line,) = [line for line in words.splitlines() if line.startswith("[!]")]
    assert says in line
    assert "Traceback" not in words
