"""Bundles of trained models, built once a session with small budgets, and what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest

from trtc.compiler import BuildOptions, ShapeOptions, build

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from trtc.compiler import BuildReport
    from trtc.runtime import Session

REC_BATCH, REC_HEIGHT, REC_WIDTH = "p2o.DynamicDimension.0", "x_2", "p2o.DynamicDimension.1"


@dataclass(frozen=True)
class Plain:
    """The model in plain ONNX Runtime, at exact sizes: what every answer must equal."""

    session: onnxruntime.InferenceSession

    def __call__(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        names = [out.name for out in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, dict(feeds)), strict=True))


@pytest.fixture(scope="session")
def plain() -> Callable[[Path], Plain]:
    opened: dict[Path, Plain] = {}

    def open_plain(path: Path) -> Plain:
        if path not in opened:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.log_severity_level = 4
            opened[path] = Plain(onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]))
        return opened[path]

    return open_plain


@pytest.fixture(scope="session")
def assert_equal_outputs() -> Callable[..., None]:
    def check(session: Session, got: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
        """Every output is there, in the same order, dtype and shape, and equal within the bundle's tolerance."""
        assert list(got) == list(expected)
        atol, rtol = session.manifest.tolerance
        for name, right in expected.items():
            assert (got[name].dtype, got[name].shape) == (right.dtype, right.shape), name
            if right.size:
                assert np.isfinite(right).all(), name
                largest = float(np.abs(right).max())
                assert float(np.abs(got[name] - right).max()) <= atol + rtol * largest, name

    return check


def quick_options(**declared: Any) -> BuildOptions:
    """Options of a build that measures nothing and compares briefly."""
    return BuildOptions(**{"measure_s": 0.0, "verify_s": 2.0, **declared})


@pytest.fixture(scope="session")
def minilm_options() -> BuildOptions:
    return quick_options(
        shapes=ShapeOptions(dim=("batch_size=1..4",), buckets=("sequence_length=8,16,32",)),
        pads=("sequence_length", "batch_size"),
        fills=("input_ids=0", "attention_mask=0"),
        derives=("attention_mask=ones",),
        mode="bucket",
    )


@pytest.fixture(scope="session")
def minilm(minilm_path: Path, minilm_options: BuildOptions, tmp_path_factory: pytest.TempPathFactory) -> BuildReport:
    return build(minilm_path, tmp_path_factory.mktemp("bundles") / "minilm.trtc", minilm_options)


@pytest.fixture(scope="session")
def recogniser(ppocr_rec_path: Path, tmp_path_factory: pytest.TempPathFactory) -> BuildReport:
    dims = (f"{REC_BATCH}=1:2:4", f"{REC_HEIGHT}=48", f"{REC_WIDTH}=8:64:512")
    options = quick_options(shapes=ShapeOptions(dim=dims), pads=(f"{REC_BATCH}:rows",), mode="bucket")
    return build(ppocr_rec_path, tmp_path_factory.mktemp("bundles") / "rec.trtc", options)
