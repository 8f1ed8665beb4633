"""Run with TensorRT or TensorRT for RTX: one engine, a lane for each slot, a context and a graph for each bucket.

Nothing of this was ever run on a GPU by its authors: it is written against the documented interfaces, and tested
against a simulator that enforces what they demand. ``docs/gpu.md`` says what is checked how.
"""

from __future__ import annotations

import mmap
import weakref
from threading import Lock
from typing import TYPE_CHECKING, Any

from trtc.engines import gpu as gpus
from trtc.engines.device_stats import DeviceStats
from trtc.engines.errors import EngineError
from trtc.engines.opening import plugins_refused
from trtc.engines.protocol import Traits
from trtc.engines.tensorrt.call import DeviceCall
from trtc.engines.tensorrt.choice import needs_of
from trtc.engines.tensorrt.device import CudaDevice, cuda_device
from trtc.engines.tensorrt.device_arena import ALIGNMENT_BYTES
from trtc.engines.tensorrt.device_views import look_at
from trtc.engines.tensorrt.failures import RuntimeLog, failures
from trtc.engines.tensorrt.lane import Lanes
from trtc.engines.tensorrt.opened import Handles, OpenedEngine, check_tensors
from trtc.engines.tensorrt.plugins import load_plugins
from trtc.engines.tensorrt.runtime_cache import RuntimeCache
from trtc.engines.tensorrt.size_classes import SizeClasses
from trtc.engines.tensorrt.toolkit import Toolkit, open_toolkit, runtime_library
from trtc.profiles import HostError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from trtc.engines.gpu import Gpu
    from trtc.engines.layout import Layout
    from trtc.engines.opening import Opening
    from trtc.engines.protocol import Slot


class TensorRTEngine:
    """One engine on one device. ``prepare`` and the calls of different slots may be used from several threads."""

    def __init__(self, opened: OpenedEngine) -> None:
        self.traits = Traits(
            on_device=True,
            asynchronous=True,
            alignment_bytes=ALIGNMENT_BYTES,
            map_memory=opened.device.map_pinned,
        )
        self._lock = Lock()
        self._opened: OpenedEngine | None = opened
        self._lanes = Lanes(opened)
        # An engine that is dropped without `close` still gives its memory back.
        self._dropped = weakref.finalize(self, _free, self._lanes, opened.device, opened.handles)
        self._dropped.atexit = False

    def reserve(self, calls: int) -> None:
        """Take the memory of so many calls at once, so that none of them lacks it later.

        Raises:
            HostError: when the device has no such memory, with the figures.
        """
        opened = self._open()
        with self._lock, failures("reserving device memory"):
            opened.device.enter()
            self._lanes.reserve(calls)

    def prepare(self, bucket: Layout, slot: Slot) -> DeviceCall:
        """Bind one call.

        Raises:
            EngineError: when the engine was closed, or does not have these inputs and outputs.
        """
        opened = self._open()
        if slot.objects:
            raise EngineError(f"inputs {', '.join(slot.objects)} cannot lie in a device's memory; use --target cpu")
        _check_names(opened, bucket)
        with self._lock, failures("preparing a call"):
            opened.device.enter()
            lease = self._lanes.lease(slot.address)
            if lease.lane.busy:
                lease.lane.wait()
            return DeviceCall(opened, lease, lease.lane.prepare(bucket, slot), slot, self._lock)

    def look(self, value: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return shape and element type of an object on the device; see ``DeviceEngine``."""
        opened = self._open()
        with failures("looking at a tensor on the device"):
            opened.device.enter()
            return look_at(opened.device, value)

    def part(self, address: int) -> None:
        """Leave the lane of a slot to those who still look at it; see ``DeviceEngine``."""
        with self._lock:
            self._lanes.part(address)

    def device_stats(self) -> DeviceStats | None:
        """Return what lies on the device; None after ``close``."""
        opened = self._opened
        if opened is None:
            return None
        figures = opened.device.arena.figures
        return DeviceStats(
            device=str(opened.device.gpu),
            profiles=opened.needs,
            lane_bytes=opened.region_bytes + opened.scratch_bytes,
            reserved_bytes=figures.reserved_bytes,
            in_use_bytes=figures.in_use_bytes,
            peak_bytes=figures.peak_bytes,
            largest_free_bytes=figures.largest_free_bytes,
            fragmentation=figures.fragmentation,
            allocations=figures.allocations,
            driver_allocations=figures.chunks_made,
            pool=opened.pool.stats,
            lanes=len(self._lanes.all),
            contexts=opened.counters.contexts,
            graphs=opened.counters.graphs,
            without_graph=opened.counters.without_graph,
        )

    def close(self) -> None:
        """Free contexts, memory and engine; keep the kernels that were compiled for the next start."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        with failures("closing the engine"):
            if opened.cache is not None:
                opened.cache.save()
            self._dropped()
            opened.pool.compact()

    def _open(self) -> OpenedEngine:
        if self._opened is None:
            raise EngineError("the engine was closed; load the bundle again")
        return self._opened


def load_engine(opening: Opening) -> TensorRTEngine:
    """Open an engine whose files were checked.

    The driver is asked first: without one, TensorRT's runtime crashes the process instead of failing.

    Raises:
        HostError: no driver, no fitting GPU, a library that is not installed, or plug-ins that were not allowed.
        EngineError: when TensorRT refuses the engine, or one of its plug-ins.
    """
    if opening.record.plugins and not opening.allow_plugins:
        raise HostError(f"engine {opening.record.name}: {plugins_refused(opening.record)}")
    gpu = _choose(opening)
    toolkit = open_toolkit(runtime_library(opening.record.backend, opening.record.options))
    device = cuda_device(toolkit.cuda, gpu)
    with failures("opening the engine"):
        device.enter()
        log = RuntimeLog(toolkit.trt)
        handles = Handles(toolkit.trt.Runtime(log.logger))
        try:
            _load_plugins(opening, handles, log)
            _deserialize(opening.files[opening.record.entry], toolkit, handles, log)
            return TensorRTEngine(_opened(opening, toolkit, device, log, handles))
        except BaseException:
            handles.close()
            raise


def _opened(opening: Opening, toolkit: Toolkit, device: CudaDevice, log: RuntimeLog, handles: Handles) -> OpenedEngine:
    """Look at the engine, and gather what its calls need."""
    profiles = len(opening.ladder.profiles)
    if handles.engine.num_optimization_profiles != profiles:
        raise EngineError(
            f"the engine has {handles.engine.num_optimization_profiles} profiles, its manifest says {profiles}; "
            "rebuild the bundle"
        )
    check_tensors(handles, toolkit, opening.signature)
    scratch = [handles.engine.get_device_memory_size_for_profile_v2(i) for i in range(profiles)]
    host = toolkit.trt.TensorLocation.HOST
    used = [spec.name for spec in opening.signature.inputs if spec.used]
    return OpenedEngine(
        toolkit=toolkit,
        device=device,
        log=log,
        handles=handles,
        signature=opening.signature,
        ladder=opening.ladder,
        needs=needs_of(opening.signature, opening.ladder, scratch),
        on_host=frozenset(name for name in used if handles.engine.get_tensor_location(name) == host),
        pool=SizeClasses(device.arena),
        cache=_cache(handles, toolkit, opening, device),
    )


def _choose(opening: Opening) -> Gpu:
    """Return the GPU that was asked for, or the first that the engine holds kernels for."""
    survey = gpus.survey_gpus()
    wanted = opening.record.requirements.compute_capabilities
    if opening.device or not survey.gpus or not wanted:
        return gpus.choose_gpu(opening.device, survey)
    for gpu in survey.gpus:
        if gpu.compute_capability in wanted:
            return gpu
    there = ", ".join(str(gpu) for gpu in survey.gpus)
    raise HostError(
        f"the engine holds kernels for {', '.join(wanted)}, and here are {there}; rebuild it for one of them"
    )


def _load_plugins(opening: Opening, handles: Handles, log: RuntimeLog) -> None:
    """Open the engine's libraries of plug-ins, whose digests were checked; they end with the runtime."""
    if not opening.record.plugins:
        return
    registry = handles.runtime.get_plugin_registry()
    refused = load_plugins(registry, (opening.files[path] for path in opening.record.plugins))
    if refused is not None:
        raise log.refused(f"loading the plug-in library {refused.name}")


def _deserialize(path: Path, toolkit: Toolkit, handles: Handles, log: RuntimeLog) -> None:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        handles.engine = handles.runtime.deserialize_cuda_engine(data)
    if handles.engine is None:
        raise log.refused(f"opening the engine with {toolkit.trt.__name__} {toolkit.trt.__version__}")


def _cache(handles: Handles, toolkit: Toolkit, opening: Opening, device: CudaDevice) -> RuntimeCache | None:
    """The kernels of this engine on this device, where the library compiles them at run time."""
    if not hasattr(handles.engine, "create_runtime_config"):
        return None
    config = handles.engine.create_runtime_config()
    if not hasattr(config, "create_runtime_cache"):
        return None
    digest = next(file.sha256 for file in opening.record.files if file.path == opening.record.entry)
    return RuntimeCache(config, f"{digest[:32]}-{device.gpu.compute_capability}-{toolkit.trt.__version__}")


def _check_names(opened: OpenedEngine, layout: Layout) -> None:
    wanted = {spec.name for spec in opened.signature.inputs if spec.used}
    if missing := sorted(wanted - layout.inputs.keys()):
        raise EngineError(f"this engine needs every input, and {', '.join(map(repr, missing))} was left out; give it")


def _free(lanes: Lanes, device: CudaDevice, handles: Handles) -> None:
    device.enter()
    lanes.close()
    handles.close()
