"""The part of TensorRT's runtime that is used. Signatures are compared with the real ones in ``test_surface``.

Enumerations and the classes that users derive from are those of the really installed module.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.streams import Work
from simulator.world import BreachError, bytes_at

if TYPE_CHECKING:
    from simulator.store import BuiltModel, EngineStore
    from simulator.streams import Stream
    from simulator.world import Extent, World

ALIGNMENT = 256
_TYPES = {
    "float32": "FLOAT",
    "float16": "HALF",
    "bfloat16": "BF16",
    "int8": "INT8",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "uint8": "UINT8",
}


class TensorRT:
    """The module, for one simulated machine.

    Args:
        real: the installed module whose enumerations it takes; what that one lacks is missing here too.
        world: the machine.
        store: built engines.
    """

    def __init__(self, real: Any, world: World, store: EngineStore) -> None:
        self.real = real
        self.world = world
        self.store = store
        self.__name__ = real.__name__
        self.__version__ = real.__version__
        self.rtx = hasattr(real, "CudaGraphStrategy")
        self.ILogger = real.ILogger
        self.IOutputAllocator = real.IOutputAllocator
        self.TensorIOMode = real.TensorIOMode
        self.TensorLocation = real.TensorLocation
        self.ExecutionContextAllocationStrategy = real.ExecutionContextAllocationStrategy
        if self.rtx:
            self.CudaGraphStrategy = real.CudaGraphStrategy
            self.DynamicShapesKernelSpecializationStrategy = real.DynamicShapesKernelSpecializationStrategy

    def Runtime(self, logger: Any) -> Runtime:  # noqa: N802 (a class of the real module)
        """Make a runtime."""
        if not isinstance(logger, self.real.ILogger):
            raise TypeError("logger is no ILogger")
        return Runtime(self, logger)


class Runtime:
    """As ``Runtime``."""

    def __init__(self, trt: TensorRT, logger: Any) -> None:
        self._trt = trt
        self._logger = logger

    def deserialize_cuda_engine(self, serialized_engine: Any) -> ICudaEngine | None:
        """Open an engine that was really built; any other is refused."""
        self._trt.world.need_current("opening an engine")
        model = self._trt.store.find(bytes(serialized_engine))
        if model is None:
            self._logger.log(self._trt.real.ILogger.Severity.ERROR, "no such engine was built for this simulator")
            return None
        return ICudaEngine(self._trt, self, model)


class ICudaEngine:
    """As ``ICudaEngine``."""

    def __init__(self, trt: TensorRT, runtime: Runtime, model: BuiltModel) -> None:
        self._trt = trt
        self._model = model
        self._names = [*model.inputs, *model.outputs]
        self._runtime = weakref.ref(runtime)
        self._contexts: weakref.WeakSet[IExecutionContext] = weakref.WeakSet()

    def __del__(self) -> None:
        if self._runtime() is None:
            raise BreachError("a runtime went before its engine")
        if len(self._contexts):
            raise BreachError("an engine went before its contexts")

    @property
    def num_io_tensors(self) -> int:
        """Inputs and outputs."""
        return len(self._names)

    @property
    def num_optimization_profiles(self) -> int:
        """Profiles."""
        return len(self._model.profiles)

    def get_tensor_name(self, index: int) -> str:
        """Return a name."""
        return self._names[index]

    def get_tensor_mode(self, name: str) -> Any:
        """Tell inputs from outputs."""
        modes = self._trt.real.TensorIOMode
        return modes.INPUT if name in self._model.inputs else modes.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        """Return the element type."""
        dtype = (self._model.inputs | self._model.outputs)[name]
        return getattr(self._trt.real.DataType, _TYPES[dtype.name])

    def get_tensor_location(self, name: str) -> Any:
        """Tell where the engine reads or writes it."""
        places = self._trt.real.TensorLocation
        return places.HOST if name in self._model.on_host else places.DEVICE

    def get_device_memory_size_for_profile_v2(self, profile_index: int) -> int:
        """Return the bytes of scratch."""
        return self._model.scratch(profile_index)

    def create_runtime_config(self) -> Any:
        """Make a configuration for contexts."""
        return RtxRuntimeConfig(self._trt) if self._trt.rtx else IRuntimeConfig(self._trt)

    def create_execution_context(self, runtime_config: Any = None) -> IExecutionContext:
        """Make a context whose memory the user manages."""
        self._trt.world.need_current("making a context")
        self._trt.world.need_no_capture("making a context")
        user = self._trt.real.ExecutionContextAllocationStrategy.USER_MANAGED
        if runtime_config is None or runtime_config.strategy != user:
            raise BreachError("a context that allocates its own scratch")
        kind = RtxExecutionContext if self._trt.rtx else IExecutionContext
        context = kind(self._trt, self, self._model)
        self._contexts.add(context)
        if self._trt.rtx:
            runtime_config.used()
        return context


class IRuntimeConfig:
    """As ``IRuntimeConfig``."""

    def __init__(self, trt: TensorRT) -> None:
        self._trt = trt
        self.strategy: Any = None

    def set_execution_context_allocation_strategy(self, strategy: Any) -> None:
        """Choose who owns the scratch."""
        if not isinstance(strategy, self._trt.real.ExecutionContextAllocationStrategy):
            raise TypeError("no strategy")
        self.strategy = strategy


class RtxRuntimeConfig(IRuntimeConfig):
    """What TensorRT for RTX adds."""

    def __init__(self, trt: TensorRT) -> None:
        super().__init__(trt)
        self.cuda_graph_strategy = trt.real.CudaGraphStrategy.DISABLED
        self.dynamic_shapes_kernel_specialization_strategy = trt.real.DynamicShapesKernelSpecializationStrategy.LAZY
        self._cache: IRuntimeCache | None = None

    def create_runtime_cache(self) -> IRuntimeCache:
        """Make a cache of compiled kernels."""
        self._trt.world.need_current("making a runtime cache")
        return IRuntimeCache(self._trt)

    def set_runtime_cache(self, cache: IRuntimeCache) -> bool:
        """Use a cache."""
        self._cache = cache
        return True

    def used(self) -> None:
        """Check what a context was made with, and compile for it."""
        if self.cuda_graph_strategy != self._trt.real.CudaGraphStrategy.DISABLED:
            raise BreachError("two parties capture graphs")
        if self.dynamic_shapes_kernel_specialization_strategy == (
            self._trt.real.DynamicShapesKernelSpecializationStrategy.LAZY
        ):
            raise BreachError("kernels would be compiled beside the requests")
        if self._cache is not None:
            self._cache.kernels.add(str(self.dynamic_shapes_kernel_specialization_strategy))


class IRuntimeCache:
    """As ``IRuntimeCache``."""

    def __init__(self, trt: TensorRT) -> None:
        self._trt = trt
        self.kernels: set[str] = set()

    def serialize(self) -> bytes:
        """Return everything in it."""
        return "\n".join(["kernels", self._trt.__version__, *sorted(self.kernels)]).encode()

    def deserialize(self, blob: Any) -> bool:
        """Take what an earlier process compiled; what does not fit is refused."""
        lines = bytes(blob).decode(errors="replace").split("\n")
        if lines[:2] != ["kernels", self._trt.__version__]:
            return False
        self.kernels |= set(lines[2:])
        return True


class IExecutionContext:
    """As ``IExecutionContext``. What the documentation leaves undefined is a breach."""

    def __init__(self, trt: TensorRT, engine: ICudaEngine, model: BuiltModel) -> None:
        self._trt = trt
        self._world = trt.world
        self._engine = engine
        self._model = model
        self._profile: int | None = None
        self._profile_work: Work | None = None
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, Any] = {}
        self._scratch: Extent | None = None
        self._found: dict[str, tuple[int, ...]] | None = None
        self._seen: dict[str, np.ndarray] = {}
        self._ran = False
        self.state = 0

    def set_device_memory(self, memory: int, size: int) -> None:
        """Hand over scratch."""
        with self._world.lock:
            self._changing("its scratch")
            needed = max(self._model.scratch(i) for i in range(len(self._model.profiles)))
            if memory % ALIGNMENT:
                raise BreachError("scratch that is not aligned to 256 bytes")
            if size < needed:
                raise BreachError(f"{size} bytes of scratch, and {needed} are needed")
            self._world.need("device", (memory, size), "scratch")
            self._scratch = (memory, size)

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        """Select a profile; sizes must be set again."""
        with self._world.lock:
            self._world.need_current("selecting a profile")
            self._world.need_no_capture("selecting a profile")
            self._changing("its profile")
            if not 0 <= profile_index < len(self._model.profiles):
                raise BreachError(f"profile {profile_index} is not there")
            self._profile = profile_index
            self._shapes.clear()
            self._found = None
            self._profile_work = Work("a change of profile", (), (), lambda: None)
            self._stream(stream_handle).submit(self._profile_work)
            return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        """Set the sizes of an input."""
        with self._world.lock:
            self._changing("its sizes")
            if self._profile is None:
                raise BreachError("sizes were set before the profile")
            low, high = self._model.profiles[self._profile][name]
            if len(shape) != len(low) or not all(a <= s <= b for a, s, b in zip(low, shape, high, strict=True)):
                raise BreachError(f"input {name!r} of {list(shape)} is outside of profile {self._profile}")
            self._shapes[name] = tuple(shape)
            self._found = None
            self._ran = False
            return True

    def set_tensor_address(self, name: str, memory: int) -> bool:
        """Set where a tensor lies."""
        with self._world.lock:
            self._changing("an address")
            if not memory:
                raise BreachError(f"{name!r} at address 0")
            if name in self._model.on_host:
                if (found := self._world.find((memory, 1))) is not None and found.kind == "device":
                    raise BreachError(f"{name!r} is read by the host, and lies on the device")
            else:
                if memory % ALIGNMENT:
                    raise BreachError(f"{name!r} is not aligned to 256 bytes")
                self._world.need("device", (memory, 1), repr(name))
            self._addresses[name] = memory
            return True

    def set_output_allocator(self, name: str, output_allocator: Any) -> bool:
        """Set who gives memory for an output."""
        with self._world.lock:
            self._changing("an allocator")
            if not isinstance(output_allocator, self._trt.real.IOutputAllocator):
                raise TypeError("no IOutputAllocator")
            self._allocators[name] = output_allocator
            return True

    def infer_shapes(self) -> list[str]:
        """Derive the output shapes; return what is missing for it."""
        with self._world.lock:
            missing = [name for name in self._model.inputs if name not in self._shapes]
            missing += [name for name in self._model.on_host if name not in self._addresses]
            if not missing:
                self._seen = self._values()
                self._found = self._model.shapes(self._shapes, self._seen)
            return missing

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, as far as it is known."""
        if name in self._shapes:
            return self._shapes[name]
        if self._found is None:
            raise BreachError(f"the shape of {name!r} was asked for before infer_shapes")
        return self._found[name]

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Submit a run."""
        with self._world.lock:
            self._world.need_current("running")
            stream = self._stream(stream_handle)
            self._check_complete(stream)
            late = [name for name in self._model.outputs if name in self._allocators]
            if late:
                return self._run_with_allocators(stream, late)
            context = weakref.ref(self)
            state = self.state

            def run() -> None:
                alive = context()
                if alive is None:
                    raise BreachError("a context went while its run was pending")
                alive.compute()

            def still_right() -> None:
                alive = context()
                if alive is None:
                    raise BreachError("a context went before its graph")
                if alive.state != state:
                    raise BreachError("a graph was launched after its context had changed")

            reads, writes = self._extents()
            stream.submit(Work("a run", reads, writes, run, (), still_right))
            self._ran = True
            return True

    def compute(self) -> None:
        """Read the inputs, write the outputs, and use the scratch."""
        reads, writes = self._extents()
        for extent in (*reads, *writes):
            self._world.find(extent)
        self._write(self._model.run(self._read()))

    def _write(self, outputs: dict[str, np.ndarray]) -> None:
        assert self._scratch is not None
        bytes_at(self._scratch)[:] = 0x5A
        for name, array in outputs.items():
            if name not in self._allocators:
                flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                bytes_at((self._addresses[name], array.nbytes))[:] = flat

    def _run_with_allocators(self, stream: Stream, late: list[str]) -> bool:
        """Run what comes before, ask for memory, and leave the rest pending: as TensorRT does in its ``enqueue``."""
        if stream.recorded is not None:
            raise BreachError("outputs that the data sizes cannot be captured")
        stream.sync()
        outputs = self._model.run(self._read())
        targets = {}
        for name in late:
            size = max(1, outputs[name].nbytes)
            allocator = self._allocators[name]
            address = allocator.reallocate_output_async(
                name, 0, 1, ALIGNMENT, stream.handle
            )  # it may ask more than once
            if address:
                address = allocator.reallocate_output_async(name, address, size, ALIGNMENT, stream.handle)
            if not address:
                return False
            if address % ALIGNMENT:
                raise BreachError(f"{name!r} is not aligned to 256 bytes")
            self._world.need("device", (address, size), repr(name))
            targets[name] = (address, outputs[name].nbytes)
            self._allocators[name].notify_shape(name, self._trt.real.Dims(outputs[name].shape))

        def run() -> None:
            self._write(outputs)
            for name, extent in targets.items():
                bytes_at(extent)[:] = np.ascontiguousarray(outputs[name]).reshape(-1).view(np.uint8)

        reads, writes = self._extents()
        stream.submit(Work("a run", reads, (*writes, *targets.values()), run))
        return True

    def _check_complete(self, stream: Stream) -> None:
        if self._profile is None or self._scratch is None:
            raise BreachError("a run without a profile, or without scratch")
        if any(self._profile_work in s.pending for s in self._world.streams.values()):
            raise BreachError("a run before the change of profile was waited for")
        needed = [*self._model.inputs, *(n for n in self._model.outputs if n not in self._allocators)]
        if missing := [name for name in needed if name not in self._addresses]:
            raise BreachError(f"a run without an address of {', '.join(missing)}")
        if self._found is None and self.infer_shapes():
            raise BreachError("a run without the sizes of every input")
        if any(not np.array_equal(value, self._seen[name]) for name, value in self._values().items()):
            raise BreachError("values that sizes follow from changed after infer_shapes")
        if stream.recorded is not None and not self._ran:
            raise BreachError("a capture before the first run at these sizes")

    def _extents(self) -> tuple[tuple[Extent, ...], tuple[Extent, ...]]:
        assert self._found is not None
        assert self._scratch is not None
        reads = [
            (self._addresses[name], _size(self._shapes[name], dtype))
            for name, dtype in self._model.inputs.items()
            if name not in self._model.on_host
        ]
        writes = [
            (self._addresses[name], _size(self._found[name], dtype))
            for name, dtype in self._model.outputs.items()
            if name not in self._allocators
        ]
        return tuple(reads), (*writes, self._scratch)

    def _read(self) -> dict[str, np.ndarray]:
        feeds = {}
        for name, dtype in self._model.inputs.items():
            shape = self._shapes[name]
            data = bytes_at((self._addresses[name], _size(shape, dtype))).tobytes()
            feeds[name] = np.frombuffer(data, dtype).reshape(shape)
        return feeds

    def _values(self) -> dict[str, np.ndarray]:
        return (
            {name: array for name, array in self._read().items() if name in self._model.on_host}
            if (self._model.on_host)
            else {}
        )

    def _changing(self, what: str) -> None:
        """Demand that nothing of this context is pending: a run may still look at what is changed."""
        reads_writes = set()
        if self._found is not None and self._scratch is not None and not self._missing():
            reads, writes = self._extents()
            reads_writes = {*reads, *writes}
        for stream in self._world.streams.values():
            for work in stream.pending:
                if work.label.endswith("a run") and reads_writes & {*work.reads, *work.writes}:
                    raise BreachError(f"a context changed {what} while its run is pending")
        self.state += 1

    def _missing(self) -> bool:
        needed = [*self._model.inputs, *(n for n in self._model.outputs if n not in self._allocators)]
        return any(name not in self._addresses for name in needed)

    def _stream(self, handle: int) -> Stream:
        if handle not in self._world.streams:
            raise BreachError(f"no such stream: {handle:#x}; the default one is not used either")
        return self._world.streams[handle]


class RtxExecutionContext(IExecutionContext):
    """What TensorRT for RTX adds."""

    def is_stream_capturable(self, stream: int) -> bool:
        """Tell whether a run can be captured."""
        return bool(self._stream(stream)) and not self._allocators


def _size(shape: tuple[int, ...], dtype: np.dtype) -> int:
    return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
