"""The part of ``cuda.core`` that is used. Signatures are compared with the real ones in ``test_surface``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.streams import Stream, Work
from simulator.world import BreachError, bytes_at

if TYPE_CHECKING:
    from simulator.world import Allocation, World


@dataclass
class StreamOptions:
    """As ``cuda.core.StreamOptions``."""

    nonblocking: bool = True
    priority: int | None = None


class Buffer:
    """As ``cuda.core.Buffer``: memory that it owns, or a view of memory that it does not."""

    def __init__(self, world: World, address: int, size: int, allocation: Allocation | None) -> None:
        self._world = world
        self._address = address
        self._allocation = allocation
        self._closed = False
        self.size = size
        self.owner: object = None

    @property
    def handle(self) -> int:
        """The address."""
        if self._closed:
            raise BreachError("a buffer was used after it was closed")
        return self._address

    def copy_from(self, src: Buffer, *, stream: Stream, options: None = None) -> None:
        """Submit a copy of the whole of another buffer of the same size."""
        assert options is None
        with self._world.lock:
            self._world.need_current("copying")
            if src.size != self.size:
                raise BreachError(f"a copy of {src.size} bytes into {self.size}")
            to, source = (self.handle, self.size), (src.handle, src.size)
            host = []
            for extent in (to, source):
                found = self._world.find(extent)
                if found is None or found.kind == "pinned":
                    host.append(extent)

            def run() -> None:
                for extent in (to, source):
                    self._world.find(extent)  # alive still
                bytes_at(to)[:] = bytes_at(source)

            stream.submit(Work(f"a copy of {self.size} bytes", (source,), (to,), run, tuple(host)))

    def close(self, stream: None = None) -> None:
        """Free what it owns."""
        assert stream is None
        with self._world.lock:
            if self._closed:
                return
            self._closed = True
            if self._allocation is not None:
                self._world.need_current("freeing memory")
                self._world.free(self._allocation)


class Cuda:
    """The module. A new one for each simulated machine, as if in a process of its own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.StreamOptions = StreamOptions
        self.Device = _bound(Device, world)
        self.Buffer = _Buffers(world)
        self.LegacyPinnedMemoryResource = _bound(LegacyPinnedMemoryResource, world)
        self.utils = _Utils(world)


class _Buffers:
    """Stands for the class ``Buffer`` where only its static method is used."""

    def __init__(self, world: World) -> None:
        self._world = world

    def from_handle(
        self, ptr: int, size: int, mr: None = None, owner: object | None = None, *, stream: None = None
    ) -> Buffer:
        """View memory that somebody else owns."""
        assert mr is None
        assert stream is None
        if not ptr:
            raise BreachError("a buffer over address 0")
        buffer = Buffer(self._world, ptr, size, None)
        buffer.owner = owner
        return buffer


class _Utils:
    """As ``cuda.core.utils``."""

    def __init__(self, world: World) -> None:
        self.StridedMemoryView = _bound(StridedMemoryView, world)


class StridedMemoryView:
    """As ``cuda.core.utils.StridedMemoryView``: a tensor on a device, of ours or of somebody else.

    Attributes:
        exporting_obj: what it was made from, and keeps alive.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.ptr = 0
        self.shape: tuple[int, ...] = ()
        self.strides: tuple[int, ...] | None = None
        self.dtype = np.dtype("f4")
        self.device_id = 0
        self.exporting_obj: object = None

    @classmethod
    def from_any_interface(cls, obj: Any, stream_ptr: int | None = None) -> StridedMemoryView:
        """View a tensor of somebody; a stream waits for what its owner submitted, unless it is -1."""
        view = cls()  # type: ignore[call-arg]  # bound to its world
        with view._world.lock:
            view._world.need_current("viewing a tensor")
            if stream_ptr != -1:
                if stream_ptr not in view._world.streams:
                    raise BreachError("an unknown stream is to wait for a tensor")
                obj.made()
            view.ptr, view.shape, view.strides = obj.buffer.handle, obj.shape, obj.strides
            view.dtype, view.device_id, view.exporting_obj = obj.dtype, obj.__dlpack_device__()[1], obj
        return view

    @classmethod
    def from_buffer(
        cls, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, *, dtype: Any = None
    ) -> StridedMemoryView:
        """View a buffer as a tensor."""
        view = cls()  # type: ignore[call-arg]  # bound to its world
        view.ptr, view.shape, view.strides, view.dtype = buffer.handle, shape, strides, dtype
        view.exporting_obj = buffer
        last = sum((n - 1) * s for n, s in zip(shape, strides or (), strict=True)) + 1
        if 0 not in shape and last * dtype.itemsize > buffer.size:
            raise BreachError("a view that reaches beyond its buffer")
        return view

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device_id)


class Device:
    """As ``cuda.core.Device``: a device by its index."""

    def __init__(self, world: World, device_id: int | None = None) -> None:
        if device_id is None or not 0 <= device_id < world.devices:
            raise BreachError(f"device {device_id} is not there")
        self._world = world
        self._index = device_id

    def set_current(self, ctx: None = None) -> None:
        """Make it the device of this thread."""
        assert ctx is None
        self._world.set_current(self._index)

    def create_stream(self, obj: None = None, options: StreamOptions | None = None) -> Stream:
        """Make a stream."""
        assert obj is None
        with self._world.lock:
            self._world.need_current("making a stream")
            if options is None or not options.nonblocking:
                raise BreachError("a stream that waits for the default one")
            return Stream(self._world)

    def allocate(self, size: int, *, stream: Stream) -> Buffer:
        """Allocate device memory in the order of a stream."""
        with self._world.lock:
            self._world.need_current("allocating")
            found = self._world.allocate("device", size, stream)

            def ready() -> None:
                found.ready = True

            stream.submit(Work("an allocation", (), (), ready))
            return Buffer(self._world, found.address, size, found)


class LegacyPinnedMemoryResource:
    """As ``cuda.core.LegacyPinnedMemoryResource``."""

    def __init__(self, world: World) -> None:
        self._world = world

    def allocate(self, size: int, *, stream: None = None) -> Buffer:
        """Allocate memory that both sides reach; aligned to 512 bytes, no more."""
        assert stream is None
        with self._world.lock:
            self._world.need_current("allocating")
            found = self._world.allocate("pinned", size, None)
            return Buffer(self._world, found.address, size, found)


def _bound(kind: Any, world: World) -> Any:
    """Return a class whose instances belong to a world."""
    return type(kind.__name__, (kind,), {"__init__": lambda self, *args, **kw: kind.__init__(self, world, *args, **kw)})
