"""Model files: damaged, foreign, hostile, with their weights in files beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.testing import assert_array_equal
from onnx import TensorProto, helper

from trtc.profiles import ModelError, TrtcError, UsageError
from trtc.runtime import load

SUM = "g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 1}> { y = MatMul (x, w) }"


@pytest.fixture
def folder(tmp_path, parsed):
    """A folder with a model whose weight lies in a file; the location and the file are the test's."""

    def make(location, *, where="initializer", length=8):
        place = tmp_path / "model"
        place.mkdir(exist_ok=True)
        proto = parsed(SUM)
        tensor = proto.graph.initializer[0]
        tensor.ClearField("float_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("length", str(length))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        if where == "constant":
            proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=tensor))
            del proto.graph.initializer[:]
        elif where == "branch":
            inner = helper.make_graph(
                [helper.make_node("Identity", ["v"], ["then"])],
                "b",
                [],
                [helper.make_tensor_value_info("then", TensorProto.FLOAT, [2, 1])],
                [_named(tensor, "v")],
            )
            other = onnx.GraphProto()
            other.CopyFrom(inner)
            node = helper.make_node("If", ["yes"], ["w"], then_branch=inner, else_branch=other)
            proto.graph.node.insert(0, node)
            del proto.graph.initializer[:]
            proto.graph.initializer.append(helper.make_tensor("yes", TensorProto.BOOL, [], [True]))
        (place / "model.onnx").write_bytes(proto.SerializeToString())
        return place

    return make


def _named(tensor, name):
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def ones(path):
    path.write_bytes(np.ones(2, np.float32).tobytes())
    return path


@pytest.mark.case("Weights in a file outside of the model's folder")
@pytest.mark.parametrize("where", ["initializer", "constant", "branch"])
@pytest.mark.parametrize("how", ["parent", "absolute", "link", "hard-link", "missing", "empty", "folder", "link-above"])
def test_weights_outside_of_the_folder_are_refused_before_any_parser(build, folder, tmp_path, where, how):
    """Wherever the tensor stands, and however the way out is disguised; the message names the location."""
    outside = ones(tmp_path / "s.bin")
    location = {
        "parent": "../s.bin",
        "absolute": str(outside),
        "missing": "nope.bin",
        "empty": "",
        "folder": "sub",
        "link-above": "linked/s.bin",
    }.get(how, "w.bin")
    place = folder(location, where=where)
    (place / "sub").mkdir()
    if how == "link":
        (place / "w.bin").symlink_to(outside)
    elif how == "hard-link":
        os.link(outside, place / "w.bin")
    elif how == "link-above":
        (place / "linked").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(TrtcError) as error:
        build(place / "model.onnx")
    assert error.value.exit_code in (2, 3)
    assert (location or "location") in str(error.value)


@pytest.mark.case("Weights at a roundabout path inside the folder")
@pytest.mark.parametrize("location", ["ok.bin", "./ok.bin", "sub/../ok.bin", "sub/deep.bin"])
def test_weights_inside_of_the_folder_are_read(build, folder, location):
    """A step back that stays inside is fine."""
    place = folder(location)
    (place / "sub").mkdir()
    ones(place / "ok.bin")
    ones(place / "sub" / "deep.bin")
    with load(build(place / "model.onnx", dim=("N=1..4",)).path) as session:
        assert_array_equal(session.run({"x": np.full((1, 2), 3, np.float32)})["y"], [[6]])


@pytest.mark.case("Linked caches")
def test_a_model_root_allows_links_inside_of_it(build, folder, tmp_path):
    """A model whose files are links into a store is read when the store's root is named."""
    ones(tmp_path / "blob")
    place = folder("w.bin")
    (place / "w.bin").symlink_to(tmp_path / "blob")
    with load(build(place / "model.onnx", model_root=tmp_path, dim=("N=1..4",)).path) as session:
        assert_array_equal(session.run({"x": np.ones((1, 2), np.float32)})["y"], [[2]])


@pytest.mark.case("Weights are searched in the current folder")
def test_weights_are_found_from_any_folder(folder, tmp_path):
    """A build in another folder, by a relative path, finds the weights beside the model, and no others."""
    ones(folder("w.bin") / "w.bin")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "w.bin").write_bytes(np.full(2, 9, np.float32).tobytes())
    words = [sys.executable, "-m", "trtc.tools.cli", "build", "../model/model.onnx", "-o", "../out.trtc", "-q"]
    subprocess.run([*words, "--dim", "N=1..4", "--measure-seconds", "0", "--no-cache"], cwd=elsewhere, check=True)
    with load(tmp_path / "out.trtc") as session:
        assert_array_equal(session.run({"x": np.ones((1, 2), np.float32)})["y"], [[2]])


@pytest.mark.case("The weights file changes while the model runs")
@pytest.mark.parametrize("change", ["overwrite", "truncate", "delete", "replace"])
def test_the_source_may_change_after_the_build(build, folder, change):
    """The bundle has copies of its own: a running session and one that is loaded later answer as before."""
    place = folder("w.bin")
    weights = ones(place / "w.bin")
    bundle = build(place / "model.onnx", dim=("N=1..4",)).path
    x = np.full((1, 2), 3, np.float32)
    with load(bundle) as session:
        assert_array_equal(session.run({"x": x})["y"], [[6]])
        if change == "overwrite":
            with weights.open("r+b") as file:
                file.write(np.full(2, 5, np.float32).tobytes())
        elif change == "truncate":
            os.truncate(weights, 0)
        elif change == "delete":
            weights.unlink()
        else:
            (place / "new").write_bytes(np.full(2, 5, np.float32).tobytes())
            (place / "new").replace(weights)
        assert_array_equal(session.run({"x": x})["y"], [[6]])
    (place / "model.onnx").unlink()
    with load(bundle) as session:
        assert_array_equal(session.run({"x": x})["y"], [[6]])


@pytest.mark.case("A tensor's size does not match its data")
@pytest.mark.parametrize(
    ("dtype", "dims", "size_bytes"),
    [
        ("FLOAT", [4], 8),
        ("FLOAT", [4], 32),
        ("FLOAT", [2**40, 2**40], 0),
        ("FLOAT", [2**32, 2**32], 0),
        ("FLOAT", [-1], 4),
        ("INT8", [128], None),
        ("INT4", [3], 1),
        ("DOUBLE", [1], 4),
        ("BFLOAT16", [2], 8),
    ],
)
def test_a_tensor_whose_data_does_not_fit_is_refused_before_any_parser(build, parsed, dtype, dims, size_bytes):
    """Names the tensor, its dims, and both sizes; nothing is allocated for a size that a small file only claims."""
    proto = parsed("g (float[N] x) => (float[N] y) { y = Relu (x) }")
    tensor = TensorProto(name="bad", data_type=TensorProto.DataType.Value(dtype), dims=dims)
    if size_bytes is not None:
        tensor.raw_data = b"\0" * size_bytes
    proto.graph.initializer.append(tensor)
    with pytest.raises(ModelError, match="'bad'"):
        build(proto)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n"


@pytest.mark.case("A file that is no model")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "0 bytes|empty", id="empty"),
        pytest.param(LFS, "(?i)lfs", id="git-lfs-pointer"),
        pytest.param(b"<!DOCTYPE html><html><body>Not found</body></html>", "(?i)html", id="web-page"),
        pytest.param(b"PK\x03\x04" + b"\0" * 40, "(?i)zip", id="zip"),
        pytest.param(b"ftrt" + b"\0" * 60, "(?i)engine|TensorRT", id="engine"),
        pytest.param(b"{}", "not an ONNX model but text", id="json"),
    ],
)
def test_what_is_no_model_is_recognized(trtc, tmp_path, content, words):
    """The command says what the file is and how large it is, in one line, with exit code 3."""
    import re

    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    said = trtc("build", path, "-q")
    assert said.code == 3
    assert re.search(words, said.err), said.err
    assert said.err.count("\n") == 1


@pytest.mark.case("A truncated model")
@pytest.mark.parametrize("share", ["1 byte", "10 bytes", "half", "all but one"])
def test_a_truncated_model_is_refused_with_its_size(build, parsed, tmp_path, share):
    """Never read as a smaller model."""
    data = parsed(SUM).SerializeToString()
    count = {"1 byte": 1, "10 bytes": 10, "half": len(data) // 2, "all but one": len(data) - 1}[share]
    path = tmp_path / "model.onnx"
    path.write_bytes(data[:count])
    with pytest.raises(ModelError, match=rf"{count}\b"):
        build(path)


@pytest.mark.case("A folder, or nothing, instead of a model")
def test_a_folder_and_a_missing_path_are_told_apart(build, tmp_path, model_file):
    """A folder offers the models in it; a missing path is wrong use."""
    with pytest.raises(UsageError, match="nope"):
        build(tmp_path / "nope.onnx")
    shutil.copy(model_file(SUM), tmp_path / "inner.onnx")
    with pytest.raises(TrtcError, match=r"inner\.onnx"):
        build(tmp_path)


@pytest.mark.case("A bundle is given where a model belongs, and the other way round")
def test_model_and_bundle_are_not_mistaken_for_each_other(build, trtc, model_file):
    """One line that says what came; never a traceback."""
    path = model_file(SUM)
    bundle = build(path, dim=("N=1..4",)).path
    for words in (("build", bundle), ("run", path)):
        said = trtc(*words)
        assert said.code in (1, 2, 3)
        assert "Traceback" not in said.err
        assert Path(str(words[1])).name in said.err
