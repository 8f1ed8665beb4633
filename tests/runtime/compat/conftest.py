"""Two tiny models, each as a file, as a bundle that was built from it, and as sessions of both kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from trtc.compiler import BuildOptions, build
from trtc.runtime.compat import session_class_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """A model and its bundle."""

    model: Path
    bundle: Path

    def plain(self, *args: Any, **kwargs: Any) -> Any:
        return onnxruntime.InferenceSession(*(args or (str(self.model),)), **kwargs)

    def served(self, *args: Any, **kwargs: Any) -> Any:
        return session_class_for(self.bundle)(*(args or (str(self.model),)), **kwargs)


def info(name: str, dtype: int, dims: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def numbers_model() -> onnx.ModelProto:
    """Floats of any rows, and a whole number of no axis; three outputs."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Add", ["s", "s"], ["z"]),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
    ]
    inputs = [info("x", TensorProto.FLOAT, ["rows", 3]), info("s", TensorProto.INT64, [])]
    outputs = [info("y", TensorProto.FLOAT, ["rows", 3]), info("z", TensorProto.INT64, [])]
    outputs.append(info("total", TensorProto.FLOAT, []))
    graph = helper.make_graph(nodes, "numbers", inputs, outputs, doc_string="about the graph")
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9, producer_name="hand", doc_string="about it"
    )
    model.model_version, model.domain = 7, "org.example"
    helper.set_model_props(model, {"labels": "a\nb", "unit": "mm"})
    return model


def texts_model() -> onnx.ModelProto:
    """Texts as they are, and numbers as a sequence of rows."""
    nodes = [
        helper.make_node("Identity", ["t"], ["u"]),
        helper.make_node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0),
    ]
    inputs = [info("t", TensorProto.STRING, ["n"]), info("x", TensorProto.FLOAT, ["m", 2])]
    rows = helper.make_tensor_sequence_value_info("rows", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "texts", inputs, [info("u", TensorProto.STRING, ["n"]), rows])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def built(folder: Path, model: onnx.ModelProto, name: str) -> Pair:
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    build(path, folder / f"{name}.trtc", BuildOptions(measure_s=0, verify_s=1, use_cache=False))
    return Pair(path, folder / f"{name}.trtc")


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return built(tmp_path_factory.mktemp("numbers"), numbers_model(), "numbers")


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return built(tmp_path_factory.mktemp("texts"), texts_model(), "texts")


@pytest.fixture
def through() -> Callable[[Any], list[tuple[str, str]]]:
    """Tell what a session left to ONNX Runtime, as method and reason."""

    def read(session: Any) -> list[tuple[str, str]]:
        _, report = session._trtc_counts.drain()
        return [(entry["method"], entry["reason"]) for entry in report if "method" in entry]

    return read
