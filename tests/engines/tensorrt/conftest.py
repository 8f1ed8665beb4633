"""Engines built by the real TensorRT for RTX, which needs no GPU to build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import pytest
from onnx import TensorProto, helper

from trtc.compiler.importer import load_model
from trtc.compiler.signature import model_inputs
from trtc.engines.build import EngineRequest
from trtc.engines.signature import Signature, TensorSpec
from trtc.engines.target import parse_target
from trtc.profiles import Ladder, Profile, Range

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("tensorrt_rtx", reason="pip install 'trtc[rtx]'")


@pytest.fixture(scope="session")
def graph() -> Callable[..., onnx.ModelProto]:
    """Make a model: nodes, ``name=(type, dims)`` of inputs and outputs, initializers."""

    def make(
        nodes: list[onnx.NodeProto],
        inputs: dict[str, tuple[int, Any]],
        outputs: dict[str, tuple[int, Any]],
        constants: tuple[onnx.TensorProto, ...] = (),
        opset: int = 17,
    ) -> onnx.ModelProto:
        made = [
            [helper.make_tensor_value_info(n, t, dims) for n, (t, dims) in values.items()]
            for values in (inputs, outputs)
        ]
        whole = helper.make_graph(nodes, "g", made[0], made[1], list(constants))
        return helper.make_model(whole, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)

    return make


@pytest.fixture(scope="session")
def relu(graph) -> onnx.ModelProto:
    """One Relu over x float32[n, 4]."""
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    return graph([node], {"x": (TensorProto.FLOAT, ["n", 4])}, {"y": (TensorProto.FLOAT, ["n", 4])})


def ladder(*profiles: dict[str, tuple[int, int, int]]) -> Ladder:
    """Profiles from min, opt and max of each symbol."""
    return Ladder(tuple(Profile(f"p{i}", {s: Range(*r) for s, r in p.items()}) for i, p in enumerate(profiles)))


def signature_of(model: Any, unused: tuple[str, ...] = ()) -> Signature:
    """The signature as far as the file tells it; sizes of outputs are left open."""
    inputs = tuple(
        TensorSpec(s.name, s.dtype, s.dims, used=s.name not in unused, has_default=s.has_default)
        for s in model_inputs(model)
    )
    outputs = tuple(
        TensorSpec(
            out.name,
            TensorProto.DataType.Name(out.type.tensor_type.elem_type).lower(),
            tuple(None for _ in out.type.tensor_type.shape.dim) if out.type.tensor_type.HasField("shape") else None,
        )
        for out in model.proto.graph.output
    )
    return Signature(inputs, outputs)


@pytest.fixture(scope="session")
def request_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., EngineRequest]:
    """Make a request: a model or its path, profiles as dicts of ranges, a target, and anything else of a request."""

    def make(
        model: onnx.ModelProto | Path,
        *profiles: dict[str, tuple[int, int, int]],
        target: str = "rtx:sm89",
        unused: tuple[str, ...] = (),
        **more: Any,
    ) -> EngineRequest:
        work = tmp_path_factory.mktemp("engine")
        if isinstance(model, onnx.ModelProto):
            path = work / "source.onnx"
            path.write_bytes(model.SerializeToString())
            model = path
        loaded = load_model(model, work_folder=work / "model")
        (work / "built").mkdir()
        return EngineRequest(
            model_path=loaded.path,
            folder=work / "built",
            signature=signature_of(loaded, unused),
            ladder=ladder(*profiles),
            threads=2,
            target=parse_target(target),
            **more,
        )

    return make
