"""The references that every answer is compared with: ONNX Runtime without optimizations, and onnx's own evaluator."""

from __future__ import annotations

import ctypes
import re
import time
import warnings
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trtc.compiler.evaluator_faults import known_fault
from trtc.compiler.onnx_types import all_nodes, dtype_text
from trtc.engines.errors import EngineError
from trtc.engines.packed import pack, packed_bytes, unpack
from trtc.engines.signature import PACKED, numpy_dtype
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

    from trtc.compiler.model import Model
    from trtc.engines.onnxruntime import onnxruntime

_QUIET = 4
"""ONNX Runtime's log level "fatal": its errors reach the caller as exceptions, printing them as well helps nobody."""
_EVALUATOR_LIMIT_BYTES = 2**30
"""onnx's evaluator keeps a second copy of all weights; above this it is not worth its memory."""
_FAILING_NODE = re.compile(r"while running (\S+) node\. Name:'(.*?)' Status Message:", re.DOTALL)
_NAMED_NODE = re.compile(r"[Nn]ode(?: with name)?:? ?[('\"]+([^'\")]+)")
_SOURCE_PLACE = re.compile(r"/onnxruntime_src/\S+:\d+ ")
_RAW_DTYPES = frozenset(["bfloat16"]) | PACKED


class Reference(Protocol):
    """Runs the model as it is.

    Attributes:
        name: what reports call it.
    """

    name: str

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run once.

        Args:
            feeds: a value for each graph input; strings as object arrays, sequences as lists.

        Returns:
            Every output by name, owned by the caller; bfloat16 and float8 as ml_dtypes arrays.

        Raises:
            EngineError: the run failed; the message names the node and its operator.
        """


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A reference that cannot be used here.

    Attributes:
        reason: why, for the report.
    """

    reason: str


def open_reference(model: Model, threads: int) -> Reference:
    """Open the model in ONNX Runtime on the CPU, with graph optimizations off.

    Args:
        model: checked model; its ``path`` is opened, so external data is found beside it.
        threads: for one run.

    Raises:
        ModelError: ONNX Runtime does not take the model; the message names the node where it names one.
    """
    from trtc.engines.onnxruntime import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = _QUIET
    options.enable_mem_pattern = False  # patterns are kept for each shape; probes send many shapes once
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # thousands of short runs share the host
    try:
        session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(
            f"ONNX Runtime cannot open the model: {_explain(str(error), model.proto.graph)}; "
            "export it with operators and types that ONNX Runtime has (libraries of custom operators are not supported)"
        ) from error
    return _OnnxRuntime(session, model.proto.graph)


class _OnnxRuntime:
    """ONNX Runtime; used by one thread at a time."""

    name = "ONNX Runtime CPU, optimizations off"

    def __init__(self, session: onnxruntime.InferenceSession, graph: onnx.GraphProto) -> None:
        self._session = session
        self._graph = graph
        self._outputs = [out.name for out in graph.output]
        self._types = {value.name: dtype_text(value.type) for value in (*graph.input, *graph.output)}
        self._raw = any(t in _RAW_DTYPES or t.startswith("float8") for t in self._types.values())

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if self._raw:
                return self._run_raw(feeds)
            values = self._session.run(self._outputs, dict(feeds), _quiet_run())
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(f"the reference failed: {_explain(str(error), self._graph)}") from error
        return {name: _own(value) for name, value in zip(self._outputs, values, strict=True)}

    def _run_raw(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Bind memory by address: the only way in and out for element types that numpy does not have."""
        binding = self._session.io_binding()
        alive = []
        for name, value in feeds.items():
            dtype = self._types[name]
            array = np.ascontiguousarray(value, numpy_dtype(dtype)).reshape(np.shape(value))
            if dtype == "string":
                raise EngineError(
                    f"input {name!r} holds strings in a model with bfloat16, float8 or 4-bit inputs or outputs; "
                    "ONNX Runtime binds no strings: cast at the model's edge"
                )
            memory = pack(array, dtype)
            alive.append(memory)
            binding.bind_input(name, "cpu", 0, _element_number(dtype), array.shape, memory.ctypes.data)
        for name in self._outputs:
            binding.bind_output(name, "cpu")
        self._session.run_with_iobinding(binding, _quiet_run())
        found = dict(zip(self._outputs, binding.get_outputs(), strict=True))
        return {name: self._read_raw(name, found[name]) for name in self._outputs}

    def _read_raw(self, name: str, value: Any) -> Any:
        dtype = self._types[name]
        if not value.is_tensor() or dtype == "string":
            return value.numpy()
        shape = tuple(value.shape())
        stored = packed_bytes(prod(shape), dtype)
        raw = np.frombuffer(ctypes.string_at(value.data_ptr(), stored), np.uint8) if stored else np.empty(0, np.uint8)
        return unpack(raw, dtype, shape)


def onnx_evaluator(model: Model, feeds: Mapping[str, Any], budget_s: float = 2.0) -> Reference | Unavailable:
    """Open onnx's own evaluator, which shares no kernel with ONNX Runtime, and try it once.

    Args:
        model: checked model.
        feeds: the smallest inputs that will be asked; one run of them is measured.
        budget_s: seconds that one run may take; enforced between nodes and at the end of every later run too.

    Returns:
        The reference; or why it cannot serve: operators it lacks, weights too large, too slow.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    if model.size_bytes > _EVALUATOR_LIMIT_BYTES:
        return Unavailable(f"the model has {model.size_bytes} bytes, onnx's evaluator is used up to 1 GiB")
    if fault := known_fault(model.proto):
        return Unavailable(fault)
    try:
        evaluator = ReferenceEvaluator(onnx.load(str(model.path)))
    except Exception as error:  # noqa: BLE001 (any failure of the foreign library means the same: not available)
        return Unavailable(f"onnx's evaluator cannot open the model: {_first_line(error)}")
    reference = _OnnxEvaluator(evaluator, budget_s)
    try:
        reference.run(feeds)
    except EngineError as error:
        return Unavailable(str(error))
    return reference


class _TooSlowError(Exception):
    """A run went beyond its seconds."""


class _OnnxEvaluator:
    """onnx's evaluator with a deadline; used by one thread at a time."""

    name = "onnx reference evaluator"

    def __init__(self, evaluator: Any, budget_s: float) -> None:
        self._evaluator = evaluator
        self._budget_s = budget_s
        self._deadline_s = 0.0
        evaluator.rt_nodes_ = [_TimedNode(node, self._check_time) for node in evaluator.rt_nodes_]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        if empty := [name for name, value in feeds.items() if np.size(value) == 0]:
            # ONNX leaves reductions over nothing undefined: ONNX Runtime's mean is 0, the evaluator's is NaN.
            raise EngineError(f"onnx's evaluator is not asked about empty inputs ({', '.join(map(repr, empty))})")
        self._deadline_s = time.perf_counter() + self._budget_s
        try:
            # numpy warns about empty slices and overflows; a build prints nothing that it does not mean.
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                values = self._evaluator.run(None, dict(feeds), check_shape_annotations=False)
            self._check_time()
        except _TooSlowError as error:
            raise EngineError(f"onnx's evaluator needs more than {self._budget_s:g} s for one run") from error
        except Exception as error:
            raise EngineError(f"onnx's evaluator failed: {_first_line(error)}") from error
        return {name: _own(value) for name, value in zip(self._evaluator.output_names, values, strict=True)}

    def _check_time(self) -> None:
        if time.perf_counter() > self._deadline_s:
            raise _TooSlowError


class _TimedNode:
    """A node of onnx's evaluator that looks at the clock before it runs."""

    def __init__(self, node: Any, check_time: Any) -> None:
        self._node = node
        self._check_time = check_time

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self._check_time()
        return self._node.run(*args, **kwargs)


def _explain(message: str, graph: onnx.GraphProto) -> str:
    """Turn ONNX Runtime's message into: node, operator, what it reads, and the library's own words."""
    running = _FAILING_NODE.findall(message)
    text = _SOURCE_PLACE.sub("", message.rsplit("Status Message:", 1)[-1]).strip()
    names = [name for _, name in running] or _NAMED_NODE.findall(message)
    nodes = {node.name: node for node in all_nodes(graph) if node.name}
    node = next((nodes[name] for name in reversed(names) if name in nodes), None)
    if node is None:
        where = f"{running[-1][0]} node {running[-1][1]!r}: " if running else ""
        return where + text
    return f"{node.op_type} node {node.name!r} (reads {_operands(node, graph)}): {text}"


def _operands(node: onnx.NodeProto, graph: onnx.GraphProto) -> str:
    """Name what a node reads; small integer constants with their values, since they are what exports get wrong."""
    constants = {t.name: t for t in graph.initializer}
    for other in all_nodes(graph):
        if other.op_type == "Constant" and other.attribute and other.attribute[0].HasField("t"):
            constants[other.output[0]] = other.attribute[0].t
    return ", ".join(f"{name}{_small_value(constants.get(name))}" for name in node.input if name) or "nothing"


def _small_value(tensor: onnx.TensorProto | None, limit: int = 8) -> str:
    from onnx import TensorProto, numpy_helper

    small = tensor is not None and tensor.data_location != TensorProto.EXTERNAL and prod(tensor.dims) <= limit
    if tensor is None or not small or tensor.data_type not in (TensorProto.INT32, TensorProto.INT64):
        return ""
    return f"={numpy_helper.to_array(tensor).tolist()}"


def _first_line(error: BaseException, limit: int = 300) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:limit]}" if text else type(error).__name__


def _own(value: Any) -> Any:
    """Give the caller memory of its own, whatever the library keeps."""
    if isinstance(value, list):
        return [_own(item) for item in value]
    if isinstance(value, np.ndarray):
        return value if value.flags.owndata else value.copy()
    return np.asarray(value) if isinstance(value, np.generic) else value


def _quiet_run() -> Any:
    from trtc.engines.onnxruntime import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = _QUIET
    return options


def _element_number(dtype: str) -> int:
    from onnx import TensorProto

    return int(TensorProto.DataType.Value(dtype.upper()))
