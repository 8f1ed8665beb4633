"""Outputs whose size is known after the run only: TensorRT asks for memory while it runs, and tells the shape."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.errors import EngineError
from trtc.engines.memory import address_of
from trtc.profiles import TrtcError

if TYPE_CHECKING:
    from trtc.engines.tensorrt.device import CudaDevice
    from trtc.engines.tensorrt.device_arena import DeviceBlock
    from trtc.engines.tensorrt.size_classes import SizeClasses


class LateOutput:
    """One such output of one context. Used by the holder of the slot only.

    The library's callbacks come while a run is submitted, from the thread that submits; an error in one must not leave
    it, so it is kept for ``check``.
    """

    def __init__(self, name: str, dtype: np.dtype[np.generic], pool: SizeClasses) -> None:
        self.name = name
        self._dtype = dtype
        self._pool = pool
        self._block: DeviceBlock | None = None
        self._shape: tuple[int, ...] | None = None
        self._error: TrtcError | None = None

    def begin(self) -> None:
        """Forget the last run."""
        self._shape, self._error = None, None

    def memory(self, size_bytes: int) -> int:
        """Return the address of at least this many bytes; 0 when there are none."""
        try:
            if self._block is None or self._block.size_bytes < size_bytes:
                self.give_back()
                self._block = self._pool.take(size_bytes)
        except TrtcError as error:
            self._error = error
            return 0
        return self._block.address

    def told(self, shape: tuple[int, ...]) -> None:
        """Take the shape of this run."""
        self._shape = shape

    def check(self) -> None:
        """Raise what went wrong in a callback."""
        if self._error is not None:
            raise self._error

    def read(self, device: CudaDevice, stream: Any, staging: Staging) -> np.ndarray:
        """Copy the output of the run that is over into an array that the caller owns, and let go of its memory.

        Raises:
            EngineError: when the library told no shape.
        """
        self.check()
        if self._shape is None or self._block is None:
            raise EngineError(f"TensorRT told no size for output {self.name!r}; report this with the model")
        size_bytes = prod(self._shape) * self._dtype.itemsize
        result: np.ndarray = np.empty(self._shape, self._dtype)
        if size_bytes:
            host = staging.memory(size_bytes)
            device.view(host.address, size_bytes).copy_from(device.view(self._block.address, size_bytes), stream=stream)
            stream.sync()
            result[...] = np.frombuffer(host.buffer, self._dtype, result.size).reshape(self._shape)
        self.give_back()
        return result

    def give_back(self) -> None:
        """Let go of the memory; no run may be pending."""
        if self._block is not None:
            self._pool.give(self._block)
            self._block = None


class Staging:
    """Pinned host memory that late outputs pass through; it grows to the largest one, and is used one at a time."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._memory: StagingMemory | None = None

    def memory(self, size_bytes: int) -> StagingMemory:
        """Return at least this many bytes."""
        if self._memory is None or len(self._memory.buffer) < size_bytes:
            self._memory = None
            self._memory = StagingMemory(self._device.map_pinned(size_bytes * 5 // 4))
        return self._memory

    def close(self) -> None:
        """Let go of the memory."""
        self._memory = None


class StagingMemory:
    """Mapped bytes and their address."""

    __slots__ = ("address", "buffer")

    def __init__(self, mapped: Any) -> None:
        self.buffer = memoryview(mapped)
        self.address = address_of(mapped)


def output_allocator(trt: Any, late: LateOutput) -> Any:
    """Return the library's own kind of allocator, which asks ``late``."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]  # a class of the library, known at run time only
        """Hands over; the library calls it while a run is submitted."""

        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)

        def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
            """Older form of the next one."""
            del tensor_name, memory, alignment
            return late.memory(size)

        def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
            """Give memory for an output: ours is aligned to 256, and not used by other streams."""
            del tensor_name, memory, alignment, stream
            return late.memory(size)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            """Take the real shape."""
            del tensor_name
            late.told(tuple(shape))

    return Allocator()
