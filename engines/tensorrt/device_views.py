"""Tensors of others on the device, and views of ours for others: both through DLPack, by ``cuda.core``."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from trtc.engines.errors import EngineError

if TYPE_CHECKING:
    import numpy as np

    from trtc.engines.layout import Place
    from trtc.engines.tensorrt.device import CudaDevice

NO_WAIT = -1
"""What ``cuda.core`` takes for: do not order this look after the owner's work."""


def look_at(device: CudaDevice, value: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and element type of an object with DLPack or the CUDA array interface."""
    found = device.cuda.utils.StridedMemoryView.from_any_interface(value, NO_WAIT)
    return tuple(found.shape), found.dtype


def foreign_tensor(device: CudaDevice, value: Any, place: Place, stream: Any) -> Any:
    """Return a view of somebody's tensor that the stream may read: it waits for what the owner submitted.

    Raises:
        EngineError: when it is not a contiguous tensor of this shape and type on this device.
    """
    found = device.cuda.utils.StridedMemoryView.from_any_interface(value, int(stream.handle))
    where = f"input {place.name!r}"
    if found.device_id != device.gpu.index:
        raise EngineError(f"{where} lies on device {found.device_id}, and the engine on {device.gpu}; move it there")
    if tuple(found.shape) != place.shape or found.dtype != place.dtype:
        raise EngineError(f"{where} is {found.dtype} {list(found.shape)} now; it changed while it was checked")
    if found.strides is not None and tuple(found.strides) != row_major(place.shape) and place.size_bytes:
        raise EngineError(f"{where} is not contiguous on the device; make it so, or send it from the host")
    return found


def view_of(device: CudaDevice, place: Place, address: int, region: tuple[slice, ...], owner: object) -> Any:
    """View a part of one of our tensors; ``owner`` lives as long as anything that comes from the view."""
    strides = row_major(place.shape)
    skipped = sum(part.start * stride for part, stride in zip(region, strides, strict=True))
    shape = tuple(part.stop - part.start for part in region)
    start = skipped * place.dtype.itemsize
    # Bytes from the first element to the end of the tensor: a part of it never reaches further.
    buffer = device.cuda.Buffer.from_handle(address + start, max(place.size_bytes - start, 1), owner=owner)
    return device.cuda.utils.StridedMemoryView.from_buffer(buffer, shape, strides, dtype=place.dtype)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
