"""Run with a GPU provider of ONNX Runtime: tensors bound in device memory, a CUDA graph for each prepared call."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections import deque
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any

from trtc.engines.errors import EngineError
from trtc.engines.memory import array_at
from trtc.engines.onnxruntime import onnxruntime
from trtc.engines.onnxruntime.errors import ORT_ERRORS, engine_error
from trtc.engines.onnxruntime.gpu_session import engine_cache, open_session
from trtc.engines.onnxruntime.load import BoundCall, LateCall, OnnxRuntimeEngine, Opened
from trtc.engines.onnxruntime.providers import GpuSetting, provider_list, wanted_provider

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from trtc.engines.layout import Layout
    from trtc.engines.opening import Opening
    from trtc.engines.protocol import Slot

GRAPH_ID = "gpu_graph_id"
NOT_CAPTURED = "-1"
"""What ``GRAPH_ID`` says of a run that is neither captured nor replayed."""


@dataclass(slots=True)
class Device:
    """Where the calls of one session lie, and what they share.

    Attributes:
        kind: of the device, as ONNX Runtime names it: ``cuda``.
        index: as CUDA counts.
        graphs: whether each call is captured into a CUDA graph.
        turn: taken by whoever touches the device, where graphs are captured: such a session must not run in two threads
            (documentation of the CUDA provider), and while CUDA captures, a copy or an allocation of another thread
            breaks the capture.
        numbers: of the graphs, each given once.
        dropped: graphs whose calls are gone; freed before the next call is prepared.
    """

    kind: str
    index: int
    graphs: bool = False
    turn: AbstractContextManager[Any] = field(default_factory=contextlib.nullcontext)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    dropped: deque[int] = field(default_factory=deque)


class DeviceCall(BoundCall):
    """A run whose inputs and outputs lie in device memory of their own, taken once.

    ``enqueue`` copies the inputs there, runs, and copies the outputs into the slot.
    """

    def __init__(self, opened: Opened, bucket: Layout, slot: Slot, device: Device) -> None:
        self._device = device
        self._graphs: list[int] = []
        super().__init__(opened, bucket, slot)
        weakref.finalize(self, device.dropped.extend, self._graphs)

    def _bind(self, options: onnxruntime.RunOptions) -> Callable[[], None]:
        """Take device memory, bind it once, and return the run as a function without arguments."""
        turn = self._device.turn
        if self._foreign:  # types that cannot be copied to the device from here: bound on the host, copied inside
            inner = super()._bind(options)

            def in_turn() -> None:
                with turn:
                    inner()

            return in_turn
        inputs, outputs = [], []
        try:
            binding = self._session.io_binding()
            for name, place in self._bucket.inputs.items():
                value = self._take(place)
                binding.bind_ortvalue_input(name, value)
                inputs.append((value, array_at(self._slot.buffer, place)))
            for name, place in self._bucket.outputs.items():
                value = self._take(place)
                binding.bind_ortvalue_output(name, value)
                outputs.append((value, array_at(self._slot.buffer, place)))
        except ORT_ERRORS as error:
            raise engine_error(error, "binding a call on the device") from error
        filled = [(value, view) for value, view in inputs if view.size]
        read = [(value, view) for value, view in outputs if view.size]
        run, bound, running = self._session._sess.run_with_iobinding, binding._iobinding, self._opened.running  # noqa: SLF001

        def enqueue() -> None:
            try:
                with turn:
                    for value, view in filled:
                        value.update_inplace(view)
                    run(bound, options)
                    for value, view in read:
                        view[...] = value.numpy()
            except ORT_ERRORS as error:
                raise engine_error(error, running) from error

        return enqueue

    def _take(self, place: Any) -> Any:
        return onnxruntime.OrtValue.ortvalue_from_shape_and_type(
            place.shape, place.dtype.type, self._device.kind, self._device.index
        )

    def _first(self, options: onnxruntime.RunOptions) -> None:
        """Compare the shapes in a plain run; bind what is captured with options that name its graph."""
        with self._device.turn:
            if not self._device.graphs:
                super()._first(options)
                return
            self._compare_shapes(options)
            # A number of its own for each binding: a replay works on the addresses of the capture.
            self._graphs.append(next(self._device.numbers))
            captured = onnxruntime.RunOptions()
            captured.add_run_config_entry(GRAPH_ID, str(self._graphs[-1]))
            bound = self._bind(captured)
        with self._lock:
            if self._options is options:
                self._options, self.enqueue = captured, bound


class GpuLateCall(LateCall):
    """A run with inputs or outputs that cannot lie in the slot, and so not in device memory taken before."""

    def __init__(self, opened: Opened, bucket: Layout, slot: Slot, device: Device) -> None:
        self._device = device
        super().__init__(opened, bucket, slot)

    def _run(self, options: onnxruntime.RunOptions) -> None:
        with self._device.turn:
            super()._run(options)


class GpuEngine(OnnxRuntimeEngine):
    """A session on a GPU, shared by all slots."""

    def __init__(self, opened: Opened, device: Device) -> None:
        super().__init__(opened)
        self._device = device

    def _bound(self, opened: Opened, bucket: Layout, slot: Slot) -> BoundCall:
        self._free_dropped(opened.session)
        return DeviceCall(opened, bucket, slot, self._device)

    def _late(self, opened: Opened, bucket: Layout, slot: Slot) -> LateCall:
        return GpuLateCall(opened, bucket, slot, self._device)

    def _free_dropped(self, session: onnxruntime.InferenceSession) -> None:
        """Free the graphs of calls that are gone, where this version of ONNX Runtime can."""
        while self._device.dropped:
            number = self._device.dropped.popleft()
            if hasattr(session, "release_captured_graph"):
                with self._device.turn:
                    session.release_captured_graph(number)


def open_on_gpu(opening: Opening) -> GpuEngine:
    """Open an engine for a GPU provider.

    CUDA graphs are captured where the engine runs in buckets, and only where every node runs on the GPU: ONNX Runtime
    refuses the others, which are opened without.

    Raises:
        EngineError: when the provider does not load, or takes no node of the model.
    """
    options = opening.record.options
    provider = wanted_provider(options)
    execution = opening.record.execution
    index = int(opening.device or 0)
    wants_graphs = execution is not None and execution.mode == "bucket"
    cache = engine_cache(opening) if provider == "tensorrt" else None
    path = opening.files[opening.record.entry]
    for graphs in (True, False) if wants_graphs else (False,):
        setting = GpuSetting(index, graphs, cache)
        try:
            session = open_session(path, provider, provider_list(options, setting), opening.threads)
        except EngineError:
            if not graphs:
                raise
        else:
            break
    options_of = _plain_options if graphs else onnxruntime.RunOptions
    return GpuEngine(Opened(session, opening.record.target, options_of), device_of("cuda", index, graphs=graphs))


def device_of(kind: str, index: int, *, graphs: bool) -> Device:
    """Make what the calls of one session share."""
    return Device(kind, index, graphs, RLock() if graphs else contextlib.nullcontext())


def _plain_options() -> Any:
    """Make the options of a run of a session that captures graphs, which is not captured itself."""
    options = onnxruntime.RunOptions()
    options.add_run_config_entry(GRAPH_ID, NOT_CAPTURED)
    return options
