"""What happens around a build: cache hits and misses, planted faults, moved bundles, builds that are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from trtc.compiler import BuildOptions, EngineDiffersError, ShapeOptions, Silent, build, load_model
from trtc.compiler.analysis import analyse, read_declarations
from trtc.compiler.construct import construct
from trtc.compiler.options import Setting
from trtc.runtime import load

SCORES = "save_infer_model/scale_0.tmp_1"


def classifier_options(rows=2, **more):
    """Options of a build that takes about a second."""
    shapes = ShapeOptions(dim=(f"x_0=1..{rows}", "x_2=48", "x_3=192"))
    return BuildOptions(**{"shapes": shapes, "measure_s": 0.0, "verify_s": 2.0, **more})


def image(rows=1):
    return np.random.default_rng(rows).uniform(-1, 1, (rows, 3, 48, 192)).astype(np.float32)


def changed_weight(path, target, factor=1.5):
    """Copy a model with one element of its largest matrix (a vocabulary's aside) changed."""
    proto = onnx.load(path)
    constants = [node.attribute[0].t for node in proto.graph.node if node.op_type == "Constant"]
    tensors = [t for t in (*proto.graph.initializer, *constants) if t.data_type == onnx.TensorProto.FLOAT]
    tensor = max((t for t in tensors if len(t.dims) == 2 and max(t.dims) < 5000), key=lambda t: t.dims[0] * t.dims[1])
    values = numpy_helper.to_array(tensor).copy()
    values[np.unravel_index(np.abs(values).argmax(), values.shape)] *= factor
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(proto, target)
    return target


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A build cache of this test alone."""
    monkeypatch.setenv("TRTC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model_copy(ppocr_cls_path, tmp_path):
    return Path(shutil.copy(ppocr_cls_path, tmp_path / "model.onnx"))


def test_one_changed_weight_in_the_engine_fails_verification(minilm_path, minilm_options, tmp_path):
    (tmp_path / "build").mkdir()
    model = load_model(minilm_path, work_folder=tmp_path / "model")
    changed = load_model(changed_weight(minilm_path, tmp_path / "changed.onnx"), work_folder=tmp_path / "planted")
    setting = Setting(minilm_options, tmp_path / "build", 1, Silent())
    analysis = analyse(model, read_declarations(model, minilm_options), setting)
    with pytest.raises(EngineDiffersError, match=r"the engine for target cpu differs \(profile p0") as error:
        construct(changed, analysis, (), setting)
    assert "allowed is" in str(error.value)
    shutil.rmtree(tmp_path / "build")
    (tmp_path / "build").mkdir()
    assert all(
        v.passed for record in construct(model, analysis, (), setting).records for v in record.verification if v.ran
    )


@pytest.mark.usefixtures("own_cache")
def test_the_same_content_is_taken_from_the_cache_whatever_its_path_and_time(model_copy, tmp_path):
    first = build(model_copy, tmp_path / "first.trtc", classifier_options())
    assert not first.hit
    os.utime(model_copy, (0, 0))
    again = build(model_copy, tmp_path / "again.trtc", classifier_options())
    elsewhere = Path(shutil.copy(model_copy, tmp_path / "other name.onnx"))
    moved = build(elsewhere, tmp_path / "deep" / "moved.trtc", classifier_options())
    for report in (again, moved):
        assert report.hit
        assert report.manifest == first.manifest
        with load(report.path) as session:
            assert session.run({"x": image()})[SCORES].shape == (1, 2)


@pytest.mark.usefixtures("own_cache")
def test_another_weight_range_tolerance_or_seed_is_built_anew(model_copy, tmp_path):
    build(model_copy, tmp_path / "first.trtc", classifier_options())
    other = changed_weight(model_copy, tmp_path / "changed.onnx")
    assert not build(other, tmp_path / "a.trtc", classifier_options()).hit
    assert not build(model_copy, tmp_path / "b.trtc", classifier_options(rows=3)).hit
    assert not build(model_copy, tmp_path / "c.trtc", classifier_options(atol=1e-4)).hit
    assert not build(model_copy, tmp_path / "d.trtc", classifier_options(seed=1)).hit
    assert build(model_copy, tmp_path / "e.trtc", classifier_options()).hit


@pytest.mark.usefixtures("own_cache")
def test_a_bundle_needs_neither_its_model_nor_its_cache_nor_its_old_place(
    model_copy, own_cache, ppocr_cls_path, plain, tmp_path
):
    report = build(model_copy, tmp_path / "first.trtc", classifier_options())
    model_copy.unlink()
    shutil.rmtree(own_cache)
    place = tmp_path / "other folder" / "renamed.trtc"
    place.parent.mkdir()
    shutil.move(report.path, place)
    program = (
        "import sys, numpy as np\n"
        "from trtc.runtime import load\n"
        "with load(sys.argv[1]) as session:\n"
        "    np.save(sys.argv[3], session.run({'x': np.load(sys.argv[2])})['" + SCORES + "'])\n"
    )
    np.save(tmp_path / "x.npy", image(2))
    cwd = tmp_path / "elsewhere"
    cwd.mkdir()
    words = [sys.executable, "-c", program, "../other folder/renamed.trtc", tmp_path / "x.npy", tmp_path / "y.npy"]
    subprocess.run(words, check=True, cwd=cwd)
    expected = plain(ppocr_cls_path)({"x": image(2)})[SCORES]
    assert np.abs(np.load(tmp_path / "y.npy") - expected).max() <= 1e-5


KILLED_CHILD = """
import os, signal, sys
from pathlib import Path
from trtc.compiler import BuildOptions, ShapeOptions, build

model, output, word, count = sys.argv[1:]


def die_at(count):
    left = int(count)
    def step():
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return step


class Progress:
    step = staticmethod(die_at(count if word == "stage" else 0))
    def stage(self, text): self.step()
    def detail(self, text): pass
    def ahead(self, seconds): pass
    def note(self, text): pass
    def expect(self, seconds, *, same=True): pass


if word == "replace":
    step, replace = die_at(count), os.replace
    def counted(*paths, **more):
        step()
        replace(*paths, **more)
    os.replace = counted
shapes = ShapeOptions(dim=("x_0=1..3", "x_2=48", "x_3=192"))
build(Path(model), Path(output), BuildOptions(shapes=shapes, measure_s=0.0, verify_s=2.0), Progress())
"""


@pytest.fixture(scope="module")
def old_bundle(ppocr_cls_path, tmp_path_factory):
    path = tmp_path_factory.mktemp("old") / "old.trtc"
    return build(ppocr_cls_path, path, classifier_options()).path


@pytest.mark.parametrize("old", [True, False], ids=["over-an-old-bundle", "at-a-new-place"])
@pytest.mark.parametrize("moment", ["stage 2", "stage 4", "replace 1", "replace 2", "replace 4"])
@pytest.mark.usefixtures("own_cache")
def test_a_killed_build_leaves_the_old_bundle_or_the_new_one_and_the_next_build_works(
    ppocr_cls_path, old_bundle, tmp_path, old, moment
):
    path = tmp_path / "model.trtc"
    if old:
        shutil.copytree(old_bundle, path)
    words = [sys.executable, "-c", KILLED_CHILD, ppocr_cls_path, path, *moment.split()]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    if old:
        with load(path) as session:
            assert session.run({"x": image(2)})[SCORES].shape == (2, 2)
    else:
        assert (path / "manifest.json").exists() == (moment == "replace 4")
    report = build(ppocr_cls_path, path, classifier_options(rows=3))
    with load(report.path) as session:
        assert session.run({"x": image(3)})[SCORES].shape == (3, 2)
    assert sorted(p.name for p in path.iterdir() if "tmp" in p.name) == []


def test_a_model_that_returns_its_own_input_answers_under_that_name(tmp_path):
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n"])
    double = onnx.helper.make_tensor_value_info("double", onnx.TensorProto.FLOAT, ["n"])
    node = onnx.helper.make_node("Add", ["x", "x"], ["double"])
    graph = onnx.helper.make_graph([node], "g", [x], [double, x])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    build(tmp_path / "m.onnx", tmp_path / "m.trtc", BuildOptions(measure_s=0))
    given = np.array([1, 2, 3], np.float32)
    with load(tmp_path / "m.trtc") as session:
        for found in (session.run({"x": given}), session.run({"x": given})):
            assert list(found) == ["double", "x"]
            np.testing.assert_array_equal(found["x"], given)
            np.testing.assert_array_equal(found["double"], 2 * given)
        assert list(session.run({"x": given}, ["x"])) == ["x"]
        with session.borrow({"x": given}) as views:
            np.testing.assert_array_equal(views["x"], given)
