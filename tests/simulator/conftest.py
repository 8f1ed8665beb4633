"""A small model as a simulated engine, for tests that drive the libraries by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import tensorrt_rtx
from onnx import TensorProto, helper

from simulator import BuiltModel, EngineStore, Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOB = b"an engine"


def small_model() -> bytes:
    """``y = x + x`` over float32 [n, 4]."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, ["n", 4])],
        [value("y", TensorProto.FLOAT, ["n", 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    data: bytes = model.SerializeToString()
    return data


class Bench:
    """One engine, opened by hand, with what a caller needs to run it.

    Attributes:
        trt, cuda: the libraries.
        engine: with profiles n = 1..4 and n = 2..8.
        stream, other: two streams.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.world = machine.world
        self.trt: Any = machine.toolkit.trt
        self.cuda: Any = machine.toolkit.cuda
        self.device = self.cuda.Device(0)
        self.device.set_current()
        self.stream, self.other = self.new_stream(), self.new_stream()

        class Log(self.trt.ILogger):
            def __init__(self) -> None:
                tensorrt_rtx.ILogger.__init__(self)

            def log(self, severity: Any, text: str) -> None:
                del severity, text

        self.runtime = self.trt.Runtime(Log())
        self.engine = self.runtime.deserialize_cuda_engine(BLOB)
        self._buffers: list[Any] = []

    def new_stream(self) -> Any:
        return self.device.create_stream(options=self.cuda.StreamOptions(nonblocking=True))

    def memory(self, size: int = 1024, *, ready: bool = True) -> Any:
        buffer = self.device.allocate(size, stream=self.stream)
        if ready:
            self.stream.sync()
        self._buffers.append(buffer)
        return buffer

    def pinned(self, size: int = 1024) -> Any:
        buffer = self.cuda.LegacyPinnedMemoryResource().allocate(size)
        self._buffers.append(buffer)
        return buffer

    def context(self, *, profile: int = 0, n: int = 2, scratch: Any = None) -> Any:
        """Make a context that is ready to run on ``stream``."""
        context = self.bare_context()
        context.set_device_memory((scratch or self.memory(4096)).handle, 4096)
        context.set_optimization_profile_async(profile, self.stream.handle)
        self.stream.sync()
        context.set_input_shape("x", (n, 4))
        for name in "xy":
            context.set_tensor_address(name, self.memory().handle)
        assert context.infer_shapes() == []
        return context

    def bare_context(self) -> Any:
        config = self.engine.create_runtime_config()
        config.set_execution_context_allocation_strategy(self.trt.ExecutionContextAllocationStrategy.USER_MANAGED)
        kinds = self.trt.DynamicShapesKernelSpecializationStrategy
        config.dynamic_shapes_kernel_specialization_strategy = kinds.EAGER
        return self.engine.create_execution_context(config)

    def capture(self, context: Any) -> Any:
        builder = self.stream.create_graph_builder()
        builder.begin_building("thread_local")
        context.execute_async_v3(self.stream.handle)
        return builder.end_building().complete()


@pytest.fixture
def bench() -> Iterator[Bench]:
    store = EngineStore()
    ends = [{"x": ((1, 4), (4, 4))}, {"x": ((2, 4), (8, 4))}]
    store.add(BLOB, BuiltModel(small_model(), tuple(ends)))
    made = Bench(Machine(tensorrt_rtx, store))
    yield made
    made.engine = None  # before its runtime
