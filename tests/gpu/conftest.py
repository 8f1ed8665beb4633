"""The GPU that is there, or the reason why there is none; and bundles for it, built once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnxruntime
import pytest

from gpu.subject import build_bundle, targets_for
from trtc.engines.gpu import survey_gpus
from trtc.runtime import Arena, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trtc.engines.gpu import Gpu
    from trtc.runtime import Session


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    survey = survey_gpus()
    if not survey.gpus:
        pytest.skip(survey.reason)
    return survey.gpus[0]


@pytest.fixture(scope="session", params=["rtx", "tensorrt"])
def target(request: pytest.FixtureRequest, gpu: Gpu) -> str:
    """A target of TensorRT that can be built and run here."""
    found = {name: why for name, why in targets_for(gpu).items() if name.startswith(request.param)}
    ((name, why),) = found.items()
    if why:
        pytest.skip(why)
    return name


@pytest.fixture(scope="session")
def bundle(target: str, minilm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_bundle(minilm_path, tmp_path_factory.mktemp("gpu") / "minilm.trtc", (target, "cpu"))


@pytest.fixture
def open_session(bundle: Path, target: str) -> Iterator[Callable[..., Session]]:
    opened: list[Session] = []

    def open_one(**options: Any) -> Session:
        opened.append(load(bundle, engine=target, arena=Arena(), **options))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture(scope="session")
def reference(minilm_path: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Plain ONNX Runtime on the CPU."""
    session = onnxruntime.InferenceSession(str(minilm_path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds), strict=True))
