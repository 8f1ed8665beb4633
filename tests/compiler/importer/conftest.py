"""Small models to import, and a way to run what came out."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtc.compiler.importer import load_model, load_model_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trtc.compiler.model import Model

FLOAT = TensorProto.FLOAT


@pytest.fixture
def value() -> Callable[..., onnx.ValueInfoProto]:
    """Declare an input or output; float ``[B, 4]`` unless said."""

    def make(name: str, dims: Any = ("B", 4), dtype: int = FLOAT) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, dtype, dims)

    return make


@pytest.fixture
def model(value: Callable[..., onnx.ValueInfoProto]) -> Callable[..., onnx.ModelProto]:
    """Build a model; opset 17 and IR 8 unless said. Inputs and outputs by name are float ``[B, 4]``."""

    def make(
        nodes: Sequence[onnx.NodeProto],
        inputs: Sequence[Any] = ("x",),
        outputs: Sequence[Any] = ("y",),
        **rest: Any,
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            nodes,
            "g",
            [value(item) if isinstance(item, str) else item for item in inputs],
            [value(item) if isinstance(item, str) else item for item in outputs],
            rest.get("initializers", ()),
        )
        opsets: Mapping[str, int] = rest.get("opsets", {"": 17})
        proto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
            functions=rest.get("functions", ()),
        )
        proto.ir_version = rest.get("ir", 8)
        return proto

    return make


@pytest.fixture
def relu(model: Callable[..., onnx.ModelProto]) -> onnx.ModelProto:
    """The smallest useful model: y = Relu(x)."""
    return model([helper.make_node("Relu", ["x"], ["y"])])


@pytest.fixture
def work(tmp_path: Path) -> Callable[[], Path]:
    """Name a new private folder at each call."""
    numbers = count()
    return lambda: tmp_path / f"work{next(numbers)}"


@pytest.fixture
def imported(work: Callable[[], Path]) -> Callable[..., Model]:
    """Import a path, bytes or a proto."""

    def load(source: Any, base: Path | None = None, root: Path | None = None) -> Model:
        if isinstance(source, Path):
            return load_model(source, work_folder=work(), model_root=root)
        data = source if isinstance(source, bytes) else source.SerializeToString()
        return load_model_bytes(data, base, work(), model_root=root)

    return load


@pytest.fixture
def run() -> Callable[..., dict[str, Any]]:
    """Run an imported model's file, or plain bytes, with ONNX Runtime and no graph optimization."""

    def call(source: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        opened = source if isinstance(source, bytes) else str(source.path)
        session = onnxruntime.InferenceSession(opened, options, providers=["CPUExecutionProvider"])
        arrays = {name: np.asarray(array) for name, array in feeds.items()}
        return dict(zip([o.name for o in session.get_outputs()], session.run(None, arrays), strict=True))

    return call


@pytest.fixture
def weight() -> Callable[..., onnx.TensorProto]:
    """Make a float initializer of given values."""

    def make(name: str, values: Any, dtype: Any = np.float32) -> onnx.TensorProto:
        return numpy_helper.from_array(np.asarray(values, dtype), name)

    return make


@pytest.fixture
def external() -> Callable[..., onnx.TensorProto]:
    """Make a float tensor whose data is external; entries are taken as given."""

    def make(name: str, dims: Sequence[int], location: str, **entries: Any) -> onnx.TensorProto:
        tensor = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, text in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=str(text))
        return tensor

    return make
