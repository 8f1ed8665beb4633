"""Where the tensors of one call lie on the device, and which copies bring them there and back. Pure.

A slot whose places are aligned as the device wants them is mirrored: its inputs go over in one copy, its outputs come
back in one. Any other slot works too, with more copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.engines.tensorrt.device_arena import ALIGNMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from trtc.engines.layout import Layout, Place


@dataclass(frozen=True, slots=True)
class Span:
    """One copy between slot and region: offsets and size in bytes."""

    host: int
    device: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """The device side of one layout.

    Attributes:
        offsets: of each tensor in the region, a multiple of 256.
        to_device, to_host: copies before and after the run.
        size_bytes: of the region.
    """

    offsets: dict[str, int]
    to_device: tuple[Span, ...]
    to_host: tuple[Span, ...]
    size_bytes: int


def plan_device(layout: Layout, on_host: AbstractSet[str] = frozenset()) -> DevicePlan:
    """Place the tensors of a layout on the device.

    Args:
        layout: of the slot.
        on_host: inputs that the library reads from the host's memory; they are not copied.
    """
    offsets: dict[str, int] = {}
    cursor = 0
    for place in (*layout.inputs.values(), *layout.outputs.values()):
        offsets[place.name] = cursor
        cursor += -(-max(place.size_bytes, 1) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    inputs = [place for place in layout.inputs.values() if place.name not in on_host]
    return DevicePlan(offsets, _spans(inputs, offsets), _spans(layout.outputs.values(), offsets), cursor)


def _spans(places: Iterable[Place], offsets: dict[str, int]) -> tuple[Span, ...]:
    """One copy a place; neighbours that lie in the same way on both sides share one, with the gap between them."""
    spans: list[Span] = []
    for place in places:
        if not place.size_bytes:
            continue
        host, device = place.offset_bytes, offsets[place.name]
        last = spans[-1] if spans else None
        if last is not None and host - last.host == device - last.device and _near(last, host):
            spans[-1] = Span(last.host, last.device, host - last.host + place.size_bytes)
        else:
            spans.append(Span(host, device, place.size_bytes))
    return tuple(spans)


def _near(last: Span, host: int) -> bool:
    """Whether only alignment lies between a span and the next place, not a tensor that stays where it is."""
    return 0 <= host - (last.host + last.size_bytes) < ALIGNMENT_BYTES
