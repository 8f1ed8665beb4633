"""One execution context in one profile: bound once, started many times, as a graph where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.engines.errors import EngineError
from trtc.engines.signature import numpy_dtype
from trtc.engines.tensorrt.graphs import capture
from trtc.engines.tensorrt.late import LateOutput, output_allocator

if TYPE_CHECKING:
    from threading import Lock

    from trtc.engines.layout import Layout
    from trtc.engines.tensorrt.device_arena import DeviceBlock
    from trtc.engines.tensorrt.opened import OpenedEngine
    from trtc.engines.tensorrt.spans import DevicePlan

RUNNING = "running the engine"


class Binding:
    """What a run is bound to. Compared by identity: equal ones of a lane are one object.

    Attributes:
        layout: sizes and places in the slot.
        plan: places in the lane's region.
        host: address of each input that the library reads from the slot.
    """

    __slots__ = ("host", "layout", "plan")

    def __init__(self, layout: Layout, plan: DevicePlan, host: dict[str, int]) -> None:
        self.layout = layout
        self.plan = plan
        self.host = host


class ContextRun:
    """A context that belongs to one lane.

    Args:
        opened: the engine.
        profile: index of the profile that it stays in.
        stream: of the lane.
        scratch: of the lane, shared by all its contexts: they run one after the other.
        fixed: it keeps the sizes that it is bound to first.

    Raises:
        EngineError: when the library refuses.
    """

    def __init__(self, opened: OpenedEngine, profile: int, stream: Any, scratch: DeviceBlock, *, fixed: bool) -> None:
        self._opened = opened
        self._stream = stream
        self._bound: Binding | None = None
        self._graph: Any = None
        self._capturable = fixed and not opened.on_host
        self._context = opened.new_context(fixed=fixed)
        self._context.set_device_memory(scratch.address, scratch.size_bytes)
        if not self._context.set_optimization_profile_async(profile, int(stream.handle)):
            raise opened.log.refused(f"selecting profile {opened.ladder.profiles[profile].name}")
        stream.sync()
        specs = {spec.name: spec for spec in opened.signature.outputs}
        self._late = {name: LateOutput(name, numpy_dtype(spec.dtype), opened.pool) for name, spec in specs.items()}
        self._allocators: dict[str, Any] = {}

    def bind(self, binding: Binding, region: int) -> None:
        """Set sizes and addresses; no run of this context may be pending.

        Raises:
            EngineError: when the library refuses, or gives an output another shape than its relation says.
        """
        context, layout, plan = self._context, binding.layout, binding.plan
        self._bound = None
        for name, place in layout.inputs.items():
            address = binding.host.get(name) or region + plan.offsets[name]
            if not context.set_input_shape(name, place.shape):
                raise self._opened.log.refused(f"setting the shape of input {name!r} to {list(place.shape)}")
            self._set_address(name, address)
        for name in layout.outputs:
            self._set_address(name, region + plan.offsets[name])
        for name in layout.late:
            if name not in self._allocators:
                self._allocators[name] = output_allocator(self._opened.toolkit.trt, self._late[name])
                if not context.set_output_allocator(name, self._allocators[name]):
                    raise self._opened.log.refused(f"setting the allocator of output {name!r}")
        if not self._opened.on_host:
            self._settle(layout)
        self._capturable = self._capturable and not layout.late
        self._bound = binding

    def start(self, binding: Binding, region: int) -> None:
        """Submit one run on the lane's stream.

        Raises:
            EngineError: when the library refuses.
        """
        if self._bound is not binding:
            self.bind(binding, region)
        if self._graph is not None:
            self._graph.launch(self._stream)
            return
        if self._opened.on_host:
            self._settle(binding.layout)  # sizes follow from values, which are new in each run
        for name in binding.layout.late:
            self._late[name].begin()
        if not self._context.execute_async_v3(int(self._stream.handle)):
            for name in binding.layout.late:
                self._late[name].check()
            raise self._opened.log.refused(RUNNING)

    def ended(self, lock: Lock) -> None:
        """Take note that a run is over; the first one of a bucket is captured now, for all that follow.

        Args:
            lock: of the engine: one capture at a time, and none beside the making of contexts.
        """
        if not self._capturable:
            return
        self._capturable = False
        with lock:
            self._graph = capture(self._context, self._stream)
        if self._graph is None:
            self._opened.counters.without_graph += 1
            self._bound = None  # whatever a failed capture left behind is set anew
        else:
            self._opened.counters.graphs += 1

    def late(self, name: str) -> LateOutput:
        """Return an output that the data sizes."""
        return self._late[name]

    def close(self) -> None:
        """Free graph and context; nothing may be pending."""
        if self._graph is not None:
            self._graph.close()
            self._graph = None
        for late in self._late.values():
            late.give_back()
        self._allocators.clear()
        self._context = None

    def _set_address(self, name: str, address: int) -> None:
        if not self._context.set_tensor_address(name, address):
            raise self._opened.log.refused(f"setting the address of {name!r}")

    def _settle(self, layout: Layout) -> None:
        """Let the library derive the output shapes, and compare them with the plan."""
        if missing := self._context.infer_shapes():
            raise EngineError(f"{RUNNING}: TensorRT lacks the sizes or values of {', '.join(missing)}; report this")
        for name in layout.outputs:
            layout.check_output(name, tuple(self._context.get_tensor_shape(name)))
