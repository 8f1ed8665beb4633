"""One GPU as this backend uses it: the thread's device, streams, device memory, and host memory that it can read."""

from __future__ import annotations

import ctypes
import os
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

from trtc.engines.memory import PAGE_BYTES
from trtc.engines.tensorrt.device_arena import DeviceArena
from trtc.engines.tensorrt.failures import failures

if TYPE_CHECKING:
    from trtc.engines.gpu import Gpu


class CudaDevice:
    """A device of this process.

    Attributes:
        gpu: which one.
        arena: all of trtc's memory on it.

    Raises:
        EngineError: when the driver cannot be used.
    """

    def __init__(self, cuda: Any, gpu: Gpu) -> None:
        self.cuda = cuda
        self.gpu = gpu
        with failures(f"opening {gpu}"):
            self.enter()
            self._housekeeping = self.new_stream()
            self._pinned = cuda.LegacyPinnedMemoryResource()
        self.arena = DeviceArena(self._allocate, str(gpu))

    def enter(self) -> None:
        """Make this the device of the calling thread; it stays so. Before any other use, in any thread."""
        self.cuda.Device(self.gpu.index).set_current()

    def new_stream(self) -> Any:
        """Make a stream that does not wait for the default one."""
        return self.cuda.Device(self.gpu.index).create_stream(options=self.cuda.StreamOptions(nonblocking=True))

    def view(self, address: int, size_bytes: int) -> Any:
        """Return a buffer over memory that somebody else owns, for copies."""
        return self.cuda.Buffer.from_handle(address, size_bytes)

    def map_pinned(self, size_bytes: int) -> Any:
        """Map host memory that the device reads and writes by itself, while the processor does something else.

        Returns:
            A writable buffer, page-aligned; freed with its last view.
        """
        self.enter()
        size = max(1, -(-size_bytes // PAGE_BYTES)) * PAGE_BYTES
        # The driver may align less than a page.
        pinned = self._pinned.allocate(size + PAGE_BYTES)
        start = -(-int(pinned.handle) // PAGE_BYTES) * PAGE_BYTES
        memory = (ctypes.c_char * size).from_address(start)
        ctypes.memset(start, 0, size)
        weakref.finalize(memory, _free, self, pinned).atexit = False
        return memory

    def _allocate(self, size_bytes: int) -> Any:
        self.enter()
        buffer = self.cuda.Device(self.gpu.index).allocate(size_bytes, stream=self._housekeeping)
        self._housekeeping.sync()  # from here on it may be used on every stream
        return _Chunk(self, buffer)


class _Chunk:
    """Memory of the driver that any thread may give back, also one that never ran a call."""

    def __init__(self, device: CudaDevice, buffer: Any) -> None:
        self._device = device
        self._buffer = buffer

    @property
    def handle(self) -> int:
        """The address."""
        return int(self._buffer.handle)

    def close(self) -> None:
        """Give it back."""
        self._device.enter()
        self._buffer.close()


def _free(device: CudaDevice, pinned: Any) -> None:
    device.enter()  # a view may die in a thread that never ran a call
    pinned.close()


@cache
def cuda_device(cuda: Any, gpu: Gpu) -> CudaDevice:
    """Return the device of this process, which all sessions share."""
    return CudaDevice(cuda, gpu)


os.register_at_fork(after_in_child=cuda_device.cache_clear)
