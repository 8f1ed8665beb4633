"""Models in ONNX's text form, rewritten, and compared with what they were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper, parser

from trtc.engines.onnxruntime import onnxruntime
from trtc.engines.onnxruntime.fusions import fuse_model

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

    from trtc.engines.build import Fuse


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A model, and what became of it."""

    before: onnx.ModelProto
    after: onnx.ModelProto
    counts: dict[str, int]

    @property
    def operators(self) -> list[str]:
        return [node.op_type for node in self.after.graph.node]

    def run(self, **feeds: np.ndarray) -> tuple[list[Any], list[Any]]:
        """Outputs before, node by node, and after, with the library's optimizer."""
        return _outputs(self.before, feeds, "off"), _outputs(self.after, feeds, "all")

    def assert_equal(self, atol: float = 1e-6, rtol: float = 1e-5, **feeds: np.ndarray) -> None:
        for before, after in zip(*self.run(**feeds), strict=True):
            assert after.dtype == before.dtype
            np.testing.assert_allclose(after, before, atol=atol, rtol=rtol)


def _outputs(model: onnx.ModelProto, feeds: dict[str, np.ndarray], level: str) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if level == "off":
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


@pytest.fixture(scope="session")
def rewrite() -> Callable[..., Rewritten]:
    """Rewrite ``(inputs) => (outputs) { nodes }``; constants by name, numbers as float32 scalars."""

    def make(text: str, opset: int = 17, level: Fuse = "all", **constants: Any) -> Rewritten:
        graph = parser.parse_graph(f"g {text}")
        for name, value in constants.items():
            data = np.float32(value) if isinstance(value, float) else np.asarray(value)
            graph.initializer.append(numpy_helper.from_array(np.asarray(data), name))
        imports = [helper.make_opsetid("", opset)]
        before = helper.make_model(graph, opset_imports=imports, ir_version=9)
        model = ir.from_proto(before)
        counts = fuse_model(model, level)
        return Rewritten(before, ir.to_proto(model), counts)

    return make
