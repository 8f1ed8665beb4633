"""The digest of a source is its content, and nothing else."""

import os
import shutil

import numpy as np
import pytest
from onnx import helper


@pytest.fixture
def source(tmp_path, model, value, external):
    """A model with 1,000 external weights, and bytes behind them that no tensor uses."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "w.bin").write_bytes(np.arange(1000, dtype="<f4").tobytes() + b"unused")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    proto = model([node], [value("x", [1000])], [value("y", [1000])], initializers=[external("w", [1000], "w.bin")])
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    return folder / "model.onnx"


def test_the_same_bytes_at_another_path_and_time_are_the_same_source(imported, source, tmp_path):
    first = imported(source)
    shutil.copytree(source.parent, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "model.onnx").rename(tmp_path / "elsewhere" / "other.onnx")
    os.utime(tmp_path / "elsewhere" / "w.bin", (1, 1))
    second = imported(tmp_path / "elsewhere" / "other.onnx")
    assert (first.sha256, first.size_bytes) == (second.sha256, second.size_bytes)
    assert first.size_bytes == source.stat().st_size + 4000


def test_one_changed_weight_is_another_source(imported, source):
    before = imported(source).sha256
    data = bytearray((source.parent / "w.bin").read_bytes())
    data[3999] ^= 1
    (source.parent / "w.bin").write_bytes(data)
    assert imported(source).sha256 != before


def test_bytes_that_no_tensor_uses_do_not_count(imported, source):
    before = imported(source).sha256
    with (source.parent / "w.bin").open("ab") as file:
        file.write(b"more")
    assert imported(source).sha256 == before


def test_a_changed_model_file_is_another_source(imported, relu):
    before = imported(relu).sha256
    relu.producer_name = "someone"
    assert imported(relu).sha256 != before
