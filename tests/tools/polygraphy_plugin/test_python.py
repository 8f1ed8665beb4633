"""The runner and the loaders of the plug-in, from Python."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from polygraphy.comparator import Comparator, DataLoader, SimpleCompareFunc
from polygraphy.datatype import DataType
from polygraphy.exception import PolygraphyException

from trtc.compiler import BuildOptions, ShapeOptions
from trtc.tools.polygraphy_plugin import BundleFromOnnx, SaveBundle, TrtcRunner

FEEDS = {"input_ids": np.arange(6).reshape(2, 3), "attention_mask": np.ones((2, 3), np.int64)}


def test_the_metadata_has_symbols_their_bounds_and_types_of_polygraphy(built):
    with TrtcRunner(built) as runner:
        metadata = runner.get_input_metadata(use_numpy_dtypes=False)
    ids = metadata["input_ids"]
    assert (ids.dtype, list(ids.shape)) == (DataType.INT64, ["batch", "seq"])
    assert (ids.shape.min, ids.shape.max) == ([1, 1], [4, 16])


def test_one_profile_narrows_the_metadata(built):
    with TrtcRunner(built, profile="p0") as runner:
        assert runner.get_input_metadata(use_numpy_dtypes=False)["input_ids"].shape.max == [4, 8]


def test_open_ranges_bound_nothing(built_open):
    with TrtcRunner(built_open) as runner:
        shape = runner.get_input_metadata(use_numpy_dtypes=False)["input_ids"].shape
    assert (shape.min, shape.max) == (None, None)


def test_two_ways_to_run_one_bundle_are_compared_by_polygraphy(built):
    data = DataLoader(iterations=2, input_metadata=None, val_range={"input_ids": (0, 9), "attention_mask": (1, 1)})
    runners = [TrtcRunner(built, mode="exact"), TrtcRunner(built, profile="p1", mode="bucket")]
    results = Comparator.run(runners, data_loader=data)
    assert bool(Comparator.compare_accuracy(results, compare_func=SimpleCompareFunc(atol=1e-6)))
    assert all(iteration.runtime > 0 for _, iterations in results.items() for iteration in iterations)


def test_a_model_becomes_a_bundle_as_its_options_say(encoder, tmp_path):
    options = BuildOptions(shapes=ShapeOptions(dim=("batch=1..2", "seq=1..4")), measure_s=0.0, verify_s=2.0)
    loader = SaveBundle(BundleFromOnnx(onnx.load(encoder), options), tmp_path / "kept.trtc")
    with TrtcRunner(loader) as runner:
        assert runner.get_input_metadata(use_numpy_dtypes=False)["input_ids"].shape.max == [2, 4]
        assert runner.infer(FEEDS)["hidden"].shape == (2, 3, 4)
    assert (tmp_path / "kept.trtc" / "manifest.json").is_file()


def test_the_temporary_bundle_goes_with_its_loader(encoder):
    from pathlib import Path

    loader = BundleFromOnnx(encoder)
    path = Path(loader())
    assert path.is_dir()
    del loader
    assert not path.exists()


def test_an_error_of_ours_is_polygraphys_own_with_ours_as_its_cause(built):
    with TrtcRunner(built) as runner, pytest.raises(PolygraphyException, match="seq=99") as told:
        runner.infer({name: np.ones((1, 99), np.int64) for name in FEEDS})
    assert type(told.value.__cause__).__name__ == "RequestError"
