"""Comparing bundles of trained models: the sentence encoder and the text recogniser, as they are and altered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import numpy_helper

from trtc.profiles import TrtcError
from trtc.tools.cli import command

VALUE = "/model/model.0/auto_model/encoder/layer.1/attention/self/value/MatMul"


def say(*words):
    """Run the command in this process; return exit code, output, and the error if there was one."""
    found = CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False)
    assert found.exception is None or isinstance(found.exception, TrtcError), found.exc_info
    return found.exception.exit_code if found.exception else 0, found.stdout, str(found.exception or "")


@pytest.fixture(scope="module")
def altered(minilm_path, tmp_path_factory):
    """The sentence encoder with one row of one weight 1.2 times as large, and the name of what it goes into."""
    model = onnx.load(minilm_path)
    node = next(node for node in model.graph.node if node.name == VALUE)
    weight = next(t for t in model.graph.initializer if t.name == node.input[1])
    values = numpy_helper.to_array(weight).copy()
    values[5] *= np.float32(1.2)
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    path = tmp_path_factory.mktemp("altered") / "minilm.onnx"
    onnx.save(model, path)
    return path


def test_the_encoder_agrees_with_its_model_in_every_profile_exact_and_padded(minilm, minilm_path):
    code, out, error = say("compare", minilm.path, minilm_path, "--json", "--iterations", "2")
    assert code == 0, error
    report = json.loads(out)
    ways = {(case["profile"], case["mode"]) for case in report["cases"]}
    assert ways == {(p, m) for p in ("p0", "p1", "p2") for m in ("exact", "bucket")}
    assert all(case["run_sizes"] != case["sizes"] for case in report["cases"] if case["mode"] == "bucket")
    worst = {o["output"]: o["worst"] for o in report["outputs"]}
    assert set(worst) == {"output", "463", "onnx::Shape_422", "461"}
    assert worst["461"]["cosine"] > 1 - 1e-9


def test_the_node_of_an_altered_weight_is_found_in_a_handful_of_runs(minilm, altered):
    ways = ["--profile", "p0", "--mode", "exact", "--iterations", "1"]
    code, out, error = say("compare", minilm.path, altered, *ways, "--localize", "--localize-memory", "64M", "--json")
    assert code == 1
    assert "output '461': differs by" in error
    parting = json.loads(out)["parting"]
    assert VALUE in parting["theirs"]
    assert parting["inputs"], "what it reads agrees"
    assert parting["runs"] <= 12


def test_the_text_recogniser_agrees_with_its_model_where_it_may_be_batched(recogniser, ppocr_rec_path):
    code, out, error = say("compare", recogniser.path, ppocr_rec_path, "--json", "--iterations", "1")
    assert code == 0, error
    (output,) = json.loads(out)["outputs"]
    assert output["worst"]["cosine"] > 1 - 1e-6


def test_polygraphy_passes_the_encoder_and_fails_the_altered_model(minilm, minilm_path, altered, tmp_path):
    """The bundle stays the same: beside the model that it was built from it passes, beside an altered one it fails."""
    program = str(Path(sys.executable).with_name("polygraphy"))
    options = [
        *("--trtc", "--trtc-bundle", str(minilm.path), "--trtc-profile", "p2", "--trtc-mode", "bucket"),
        *("--input-shapes", "input_ids:[2,20]", "attention_mask:[2,20]"),
        *("--val-range", "input_ids:[0,30000]", "attention_mask:[1,1]", "--atol", "1e-4", "--check-error-stat", "max"),
    ]
    for model, code, word in ((minilm_path, 0, "PASSED"), (altered, 1, "FAILED")):
        run = [program, "run", str(model), "--onnxrt", *options]
        done = subprocess.run(run, check=False, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        assert f"{word} | Runtime" in done.stdout
