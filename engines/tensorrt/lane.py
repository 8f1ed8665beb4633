"""What one slot has on the device: a stream, a region for its tensors, scratch, and contexts that share both."""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from trtc.engines.errors import EngineError
from trtc.engines.tensorrt.choice import profile_for
from trtc.engines.tensorrt.context_run import Binding, ContextRun
from trtc.engines.tensorrt.late import Staging
from trtc.engines.tensorrt.spans import plan_device
from trtc.profiles import sizes_text

if TYPE_CHECKING:
    from trtc.engines.layout import Layout
    from trtc.engines.protocol import Slot
    from trtc.engines.tensorrt.opened import OpenedEngine


class Lane:
    """Runs one call at a time, in order. Lanes run beside each other.

    Attributes:
        stream: everything of this lane is submitted here.
        busy: something may be pending: it was submitted and not waited for.
        leased: calls, or views on the device, refer to it.
        staging: for late outputs.
    """

    def __init__(self, opened: OpenedEngine) -> None:
        self._opened = opened
        self.stream: Any = opened.device.new_stream()
        self.region = opened.device.arena.reserve(opened.region_bytes)
        try:
            self._scratch = opened.device.arena.reserve(opened.scratch_bytes)
        except BaseException:
            opened.device.arena.release(self.region)
            raise
        self.staging = Staging(opened.device)
        self.busy = False
        self.leased = False
        self._closed = False
        self._buckets: dict[tuple[int, Any], ContextRun] = {}
        self._others: dict[int, ContextRun] = {}
        self._bindings: dict[Any, Binding] = {}

    def prepare(self, layout: Layout, slot: Slot) -> tuple[ContextRun, Binding]:
        """Return the context for a layout, and what it is to be bound to.

        A bucket has a context of its own, which keeps its sizes. All other sizes of a profile take turns in one.

        Raises:
            EngineError: when the library refuses, or the tensors need more than was planned.
        """
        plan = plan_device(layout, self._opened.on_host)
        if plan.size_bytes > self.region.size_bytes:
            raise EngineError(
                f"{sizes_text(layout.sizes)} need {plan.size_bytes} bytes on the device, and {self.region.size_bytes} "
                "were planned from the largest sizes; rebuild the bundle"
            )
        profile, is_bucket = profile_for(self._opened.ladder, layout.sizes)
        host = {name: slot.address + layout.inputs[name].offset_bytes for name in self._opened.on_host}
        key = (
            tuple((p.name, p.shape, p.offset_bytes) for p in (*layout.inputs.values(), *layout.outputs.values())),
            layout.late,
            tuple(host.items()),
        )
        binding = self._bindings.get(key) if is_bucket else None
        if binding is None:
            binding = Binding(layout, plan, host)
            if is_bucket:
                self._bindings[key] = binding
        runs: dict[Any, ContextRun] = self._buckets if is_bucket else self._others
        place: Any = (profile, key) if is_bucket else profile
        if place not in runs:
            runs[place] = ContextRun(self._opened, profile, self.stream, self._scratch, fixed=is_bucket)
        return runs[place], binding

    def wait(self) -> None:
        """Wait until nothing is pending."""
        self.stream.sync()
        self.busy = False

    def close(self) -> None:
        """Free everything, but for the region while somebody still views it; waits first."""
        self.wait()
        for run in (*self._buckets.values(), *self._others.values()):
            run.close()
        self._buckets.clear()
        self._others.clear()
        self._bindings.clear()
        self._closed = True
        self._opened.device.arena.release(self._scratch)
        if not self.leased:
            self._opened.device.arena.release(self.region)
        self.staging.close()
        self.stream.close()

    def lease_ended(self) -> bool:
        """Take note that nobody refers to it; return whether it can be leased again. Called by a finalizer."""
        self.leased = False
        if self._closed:
            self._opened.device.arena.release(self.region)
        return not self._closed


class Lease:
    """The right of one slot's calls to use a lane; it ends with the last of them."""

    __slots__ = ("__weakref__", "lane")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane


class Lanes:
    """Lanes by the memory that they serve. Used under the engine's lock.

    A slot may move to other memory (views that a caller kept hold the old one): then its calls are prepared anew, and
    the lane of the old ones, which nobody uses any more, is taken again.
    """

    def __init__(self, opened: OpenedEngine) -> None:
        self._opened = opened
        self.all: list[Lane] = []
        self._spare: deque[Lane] = deque()
        self._by_address: weakref.WeakValueDictionary[int, Lease] = weakref.WeakValueDictionary()

    def reserve(self, count: int) -> None:
        """Make lanes until there are ``count``.

        Raises:
            HostError: when the device has no such memory.
            EngineError: when the driver refuses a stream.
        """
        while len(self.all) < count:
            self._spare.append(self._new())

    def lease(self, address: int) -> Lease:
        """Return the lane of the slot whose memory starts at ``address``.

        Raises:
            HostError, EngineError: as ``reserve``, when there is no spare one.
        """
        lease = self._by_address.get(address)
        if lease is None:
            try:
                lane = self._spare.pop()
            except IndexError:
                lane = self._new()
            lease = self._by_address[address] = Lease(lane)
            lane.leased = True
            weakref.finalize(lease, _ended, lane, self._spare).atexit = False
        return lease

    def part(self, address: int) -> None:
        """Take the lane of a slot off it; it is spare again when nobody refers to its lease."""
        self._by_address.pop(address, None)

    def close(self) -> None:
        """Free every lane."""
        self._spare.clear()
        while self.all:
            self.all.pop().close()

    def _new(self) -> Lane:
        lane = Lane(self._opened)
        self.all.append(lane)
        return lane


def _ended(lane: Lane, spare: deque[Lane]) -> None:
    if lane.lease_ended():
        spare.append(lane)
