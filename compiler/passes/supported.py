"""What the installed libraries support, asked from them: IR version, operator sets, operators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import onnx
from onnx import helper

from trtc.compiler.passes.walk import STANDARD_DOMAIN, plain_domain
from trtc.engines.onnxruntime import onnxruntime

CONTRIB_DOMAIN = "com.microsoft"
"""ONNX Runtime's own operators; it runs them without an import."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The newest version that each library reads.

    Attributes:
        onnx: None where onnx does not know the domain.
        runtime: of ONNX Runtime.
    """

    onnx: int | None
    runtime: int

    @property
    def newest(self) -> int:
        """The newest version that all of them read."""
        return self.runtime if self.onnx is None else min(self.onnx, self.runtime)

    def __str__(self) -> str:
        runtime = f"ONNX Runtime {onnxruntime.__version__} reads up to {self.runtime}"
        return runtime if self.onnx is None else f"onnx {onnx.__version__} reads up to {self.onnx}, {runtime}"


@cache
def ir_limit() -> Limit:
    """Return the newest IR version; ONNX Runtime is asked with a model of one node."""
    newest = onnx.IR_VERSION
    return Limit(newest, next((v for v in range(newest, 0, -1) if _opens(v, STANDARD_DOMAIN, 1)), 0))


@cache
def opset_limits() -> dict[str, Limit]:
    """Return the newest operator set of every domain that ONNX Runtime has operators in."""
    known = {plain_domain(domain): newest for domain, (_, newest) in onnx.defs.C.schema_version_map().items()}
    listed: dict[str, int] = {}
    for (domain, _), versions in runtime_operators().items():
        listed[domain] = max(listed.get(domain, 0), *versions)
    limits = {}
    for domain, newest in listed.items():
        ask = known.get(domain, newest)
        opening = (v for v in range(ask, 0, -1) if _opens(ir_limit().runtime, domain, v))
        limits[domain] = Limit(known.get(domain), next(opening, 0))
    return limits


@cache
def runtime_operators() -> dict[tuple[str, str], dict[int, bool]]:
    """Return ONNX Runtime's operators: (domain, name) to since-version to "is deprecated there"."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    operators: dict[tuple[str, str], dict[int, bool]] = {}
    for schema in state.get_all_operator_schema():
        key = (plain_domain(schema.domain), schema.name)
        operators.setdefault(key, {})[schema.since_version] = schema.deprecated
    return operators


def _opens(ir_version: int, domain: str, opset: int) -> bool:
    """Tell whether ONNX Runtime opens a one-node model of ours with these versions."""
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "ask", [value], [result])
    opsets = {STANDARD_DOMAIN: 1} | {domain: opset}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])
    model.ir_version = ir_version
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001 (the library has a class of its own for each way to refuse)
        return False
    return True
