"""What a program without trtc does: one context that changes its profile and its sizes for every request.

It is the peer of the throughput figures, written with the same two libraries and without mistakes: memory is taken
once, copies are asynchronous, the profile is changed only when the size demands it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.tensorrt.device import CudaDevice
    from trtc.engines.tensorrt.toolkit import Toolkit
    from trtc.profiles import Ladder


class NaiveEngine:
    """One engine, one context, one stream; for one thread.

    Args:
        plan: the engine's file.
        toolkit: the libraries.
        device: to run on.
        ladder: of the bundle, for the choice of the profile.
        log: a logger of the library.
    """

    def __init__(self, plan: Path, toolkit: Toolkit, device: CudaDevice, ladder: Ladder, log: Any) -> None:
        self._toolkit, self._device, self._ladder, self._log = toolkit, device, ladder, log
        device.enter()
        self._runtime = toolkit.trt.Runtime(log)
        self._engine = self._runtime.deserialize_cuda_engine(plan.read_bytes())
        profiles = range(self._engine.num_optimization_profiles)
        self._scratch = device.arena.reserve(
            max(self._engine.get_device_memory_size_for_profile_v2(i) for i in profiles)
        )
        config = self._engine.create_runtime_config()
        config.set_execution_context_allocation_strategy(toolkit.trt.ExecutionContextAllocationStrategy.USER_MANAGED)
        if hasattr(config, "dynamic_shapes_kernel_specialization_strategy"):
            kinds = toolkit.trt.DynamicShapesKernelSpecializationStrategy
            config.dynamic_shapes_kernel_specialization_strategy = kinds.NONE
        self._context = self._engine.create_execution_context(runtime_config=config)
        self._context.set_device_memory(self._scratch.address, self._scratch.size_bytes)
        self._stream = device.new_stream()
        self._profile: int | None = None
        self._blocks: dict[str, Any] = {}

    def run(self, feeds: dict[str, np.ndarray], symbols: dict[str, int], outputs: list[str]) -> dict[str, np.ndarray]:
        """Run one request at its exact sizes."""
        context, stream = self._context, self._stream
        profile = self._ladder.pick(symbols, frozenset(symbols))
        if profile != self._profile:
            context.set_optimization_profile_async(profile, int(stream.handle))
            stream.sync()
            self._profile = profile
        for name, array in feeds.items():
            context.set_input_shape(name, array.shape)
            block = self._block(name, array.nbytes)
            context.set_tensor_address(name, block.address)
            source = self._device.view(array.ctypes.data, array.nbytes)
            self._device.view(block.address, array.nbytes).copy_from(source, stream=stream)
        context.infer_shapes()
        found = {name: np.empty(tuple(context.get_tensor_shape(name)), np.float32) for name in outputs}
        for name, array in found.items():
            context.set_tensor_address(name, self._block(name, array.nbytes).address)
        context.execute_async_v3(int(stream.handle))
        for name, array in found.items():
            source = self._device.view(self._blocks[name].address, array.nbytes)
            self._device.view(array.ctypes.data, array.nbytes).copy_from(source, stream=stream)
        stream.sync()
        return found

    def close(self) -> None:
        """Free everything, contexts first."""
        self._stream.sync()
        self._context = None
        self._engine = None
        self._runtime = None
        for block in (self._scratch, *self._blocks.values()):
            self._device.arena.release(block)
        self._stream.close()

    def _block(self, name: str, size_bytes: int) -> Any:
        if name not in self._blocks or self._blocks[name].size_bytes < size_bytes:
            if name in self._blocks:
                self._device.arena.release(self._blocks[name])
            self._blocks[name] = self._device.arena.reserve(size_bytes)
        return self._blocks[name]
