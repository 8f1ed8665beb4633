"""A deserialized engine with everything that its contexts share, and how a context is made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtc.engines.errors import EngineError

if TYPE_CHECKING:
    from trtc.engines.device_stats import ProfileNeeds
    from trtc.engines.signature import Signature
    from trtc.engines.tensorrt.device import CudaDevice
    from trtc.engines.tensorrt.failures import RuntimeLog
    from trtc.engines.tensorrt.runtime_cache import RuntimeCache
    from trtc.engines.tensorrt.size_classes import SizeClasses
    from trtc.engines.tensorrt.toolkit import Toolkit
    from trtc.profiles import Ladder


@dataclass(slots=True)
class Counters:
    """What happened so far; see ``DeviceStats``."""

    contexts: int = 0
    graphs: int = 0
    without_graph: int = 0


@dataclass(slots=True)
class Handles:
    """The library's objects, which must go in this order: contexts (see ``Lane``), engine, runtime, the log last."""

    runtime: Any
    engine: Any = None

    def close(self) -> None:
        """Let go of both."""
        self.engine = None
        self.runtime = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OpenedEngine:
    """One engine on one device. Its values never change, but for the counters and the pool.

    Attributes:
        toolkit: the libraries.
        device: where it lies.
        log: what TensorRT says.
        handles: the ``ICudaEngine``, and the ``Runtime`` that made it.
        signature, ladder: of the bundle.
        needs: memory of each profile.
        on_host: inputs that the library reads from the host's memory, because sizes follow from their values.
        pool: memory for outputs that the data sizes.
        cache: kernels that were compiled for this device; None where the library compiles none at run time.
        counters: of all its lanes.
    """

    toolkit: Toolkit
    device: CudaDevice
    log: RuntimeLog
    handles: Handles
    signature: Signature
    ladder: Ladder
    needs: tuple[ProfileNeeds, ...]
    on_host: frozenset[str]
    pool: SizeClasses
    cache: RuntimeCache | None
    counters: Counters = field(default_factory=Counters)

    @property
    def region_bytes(self) -> int:
        """Bytes of the largest inputs and outputs."""
        return max(need.slot_bytes for need in self.needs)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of the largest scratch: contexts that run one after the other share it."""
        return max(need.scratch_bytes for need in self.needs)

    def new_context(self, *, fixed: bool) -> Any:
        """Make an execution context that owns no scratch.

        Args:
            fixed: it will keep its sizes for good, so kernels may be made for exactly those. Any other context uses
                kernels for all sizes: nothing is compiled while requests wait.

        Raises:
            EngineError: when the library refuses.
        """
        trt = self.toolkit.trt
        strategy = trt.ExecutionContextAllocationStrategy.USER_MANAGED
        engine = self.handles.engine
        if hasattr(engine, "create_runtime_config"):
            context = engine.create_execution_context(runtime_config=self._config(strategy, fixed=fixed))
        else:
            context = engine.create_execution_context(strategy)
        if context is None:
            raise self.log.refused("making an execution context")
        self.counters.contexts += 1
        return context

    def _config(self, strategy: Any, *, fixed: bool) -> Any:
        trt = self.toolkit.trt
        config = self.handles.engine.create_runtime_config()
        config.set_execution_context_allocation_strategy(strategy)
        # TensorRT for RTX has these; the graphs are captured here, once a bucket.
        if hasattr(config, "cuda_graph_strategy"):
            config.cuda_graph_strategy = trt.CudaGraphStrategy.DISABLED
        if hasattr(config, "dynamic_shapes_kernel_specialization_strategy"):
            kinds = trt.DynamicShapesKernelSpecializationStrategy
            config.dynamic_shapes_kernel_specialization_strategy = kinds.EAGER if fixed else kinds.NONE
        if self.cache is not None:
            self.cache.attach(config)
        return config


def check_tensors(handles: Handles, toolkit: Toolkit, signature: Signature) -> None:
    """Compare the engine's inputs and outputs with the signature, before anything is bound.

    Raises:
        EngineError: naming every difference.
    """
    trt = toolkit.trt
    names = [handles.engine.get_tensor_name(i) for i in range(handles.engine.num_io_tensors)]
    inputs = {name for name in names if handles.engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT}
    specs = {spec.name: spec for spec in (*signature.inputs, *signature.outputs)}
    problems = [f"it has no input {s.name!r}" for s in signature.inputs if s.used and s.name not in inputs]
    problems += [f"it has no output {s.name!r}" for s in signature.outputs if s.name not in set(names) - inputs]
    problems += [f"it has {name!r}, which the manifest does not know" for name in names if name not in specs]
    for name in names:
        found = handles.engine.get_tensor_dtype(name).name
        if name in specs and DTYPES.get(found, found) != specs[name].dtype:
            problems.append(f"{name!r} is {found} there, and {specs[name].dtype} in the manifest")
    if problems:
        raise EngineError(f"the engine does not fit its manifest: {'; '.join(problems)}; rebuild the bundle")


DTYPES = {
    "FLOAT": "float",
    "HALF": "float16",
    "BF16": "bfloat16",
    "INT8": "int8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
    "UINT8": "uint8",
    "FP8": "float8e4m3fn",
}
"""Members of TensorRT's ``DataType``, as a signature writes them."""
