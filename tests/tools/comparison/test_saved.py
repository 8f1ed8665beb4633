"""Inputs and outputs in files, read and written as Polygraphy does."""

from __future__ import annotations

import base64
import json
import pickle

import ml_dtypes
import numpy as np
import pytest
from polygraphy.comparator import IterationResult, RunResults
from polygraphy.json import load_json, save_json

from trtc.profiles import UsageError
from trtc.tools.comparison.saved import load_requests, load_results, save_requests, save_results

ONE = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "i": np.int64([[1]])}
TWO = {"x": np.zeros((0, 3), np.float32), "i": np.int64([[2]])}


def assert_same(got, expected):
    assert [list(each) for each in got] == [list(each) for each in expected]
    for one, other in zip(got, expected, strict=True):
        for name, array in other.items():
            assert one[name].dtype == array.dtype
            np.testing.assert_array_equal(one[name], array)


def test_polygraphy_reads_what_is_written_here(tmp_path):
    save_results(tmp_path / "out.json", "trtc m", [ONE, TWO])
    ((name, iterations),) = RunResults.load(str(tmp_path / "out.json")).items()
    assert name == "trtc m"
    assert_same([dict(iteration.items()) for iteration in iterations], [ONE, TWO])
    save_requests(tmp_path / "in.json", [ONE, TWO])
    assert_same(load_json(str(tmp_path / "in.json")), [ONE, TWO])


def test_what_polygraphy_writes_is_read_here(tmp_path):
    results = RunResults([("first", [IterationResult(ONE), IterationResult(TWO)]), ("second", [IterationResult(TWO)])])
    results.save(str(tmp_path / "out.json"))
    assert_same(load_results([tmp_path / "out.json"], []), [ONE, TWO])
    save_json([ONE, TWO], str(tmp_path / "in.json"))
    assert_same(load_requests([tmp_path / "in.json"], []), [ONE, TWO])


def test_one_request_goes_into_a_zip_of_arrays_with_any_name_and_type(tmp_path):
    feeds = {"a/b": np.array(["x", "y"], object), "n": np.ones(2, ml_dtypes.bfloat16)}
    save_requests(tmp_path / "in.npz", [feeds])
    (read,) = load_requests([tmp_path / "in.npz"], ["a/b"])
    assert list(read["a/b"]) == ["x", "y"]
    assert read["n"].tobytes() == feeds["n"].tobytes()


def encoded(data: bytes) -> dict[str, str]:
    return {"array": base64.b64encode(data).decode(), "polygraphy_class": "ndarray"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("nonsense", "neither a .npz file nor JSON", id="no-json"),
        pytest.param({"x": 1}, "not a list of inputs by name", id="another-object"),
        pytest.param([{"x": encoded(b"garbage")}], "not a .npy array", id="no-array"),
        pytest.param([{"x": encoded(pickle.dumps([1]))}], "not a .npy array", id="a-pickle"),
        pytest.param([{"x": {"array": "!!", "polygraphy_class": "ndarray"}}], "not base64", id="no-base64"),
        pytest.param([{"x": {"tensor": "", "polygraphy_class": "Tensor"}}], "holds a Tensor", id="a-torch-pickle"),
    ],
)
def test_other_files_are_wrong_use_and_nothing_of_theirs_is_executed(tmp_path, content, says):
    path = tmp_path / "in.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UsageError, match=says):
        load_requests([path], [])


def test_an_array_of_objects_is_refused(tmp_path):
    import io

    stream = io.BytesIO()
    np.save(stream, np.array([{}], object), allow_pickle=True)
    (tmp_path / "in.json").write_text(json.dumps([{"x": encoded(stream.getvalue())}]))
    with pytest.raises(UsageError, match="pickle"):
        load_requests([tmp_path / "in.json"], [])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("out.bin", "end the name in", id="another-ending"),
        pytest.param("missing/out.json", "there is no folder", id="no-folder"),
        pytest.param("out.npz", "holds one request, these are 2", id="two-in-one-zip"),
    ],
)
def test_a_path_that_cannot_be_written_is_wrong_use(tmp_path, name, says):
    with pytest.raises(UsageError, match=says):
        save_results(tmp_path / name, "r", [ONE, TWO])


def test_types_that_the_format_lacks_are_refused_with_advice(tmp_path):
    with pytest.raises(UsageError, match=r"write a \.npz file"):
        save_requests(tmp_path / "in.json", [{"n": np.ones(2, ml_dtypes.bfloat16)}])
