"""One prepared call: copies in, one run, copies out, all submitted at once on the lane's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.engines.tensorrt.context_run import RUNNING
from trtc.engines.tensorrt.failures import failure
from trtc.profiles import TrtcError

if TYPE_CHECKING:
    from threading import Lock

    from trtc.engines.layout import Layout
    from trtc.engines.protocol import LateOutputs, Slot
    from trtc.engines.tensorrt.context_run import Binding, ContextRun
    from trtc.engines.tensorrt.lane import Lease
    from trtc.engines.tensorrt.opened import OpenedEngine


class DeviceCall:
    """A run whose tensors lie in a slot on the host and in the lane's region on the device.

    Args:
        opened: the engine.
        lease: of the slot's lane.
        prepared: the context, and what it is bound to.
        slot: on the host.
        lock: of the engine, for what changes more than this lane.
    """

    def __init__(
        self, opened: OpenedEngine, lease: Lease, prepared: tuple[ContextRun, Binding], slot: Slot, lock: Lock
    ) -> None:
        self._opened = opened
        self._lease = lease
        self._run, self._binding = prepared
        self._memory = slot.buffer  # copies read and write it
        self._lock = lock
        self._submitted = False
        region, view, plan = lease.lane.region.address, opened.device.view, self._binding.plan
        self._to_device = tuple(
            (view(region + span.device, span.size_bytes), view(slot.address + span.host, span.size_bytes))
            for span in plan.to_device
        )
        self._to_host = tuple(
            (view(slot.address + span.host, span.size_bytes), view(region + span.device, span.size_bytes))
            for span in plan.to_host
        )

    @property
    def layout(self) -> Layout:
        """Sizes and places of this call."""
        return self._binding.layout

    def enqueue(self) -> None:
        """Submit; returns at once, but for the first run of a bucket, and for outputs that the data sizes.

        Raises:
            EngineError: when the library or the driver refuses.
            HostError: when there is no memory for an output that the data sizes.
        """
        lane = self._lease.lane
        stream: Any = lane.stream
        try:
            self._opened.device.enter()
            if lane.busy:  # a run that was interrupted before anybody waited for it
                lane.wait()
            lane.busy = True
            for target, source in self._to_device:
                target.copy_from(source, stream=stream)
            self._run.start(self._binding, lane.region.address)
            self._submitted = True
            for target, source in self._to_host:
                target.copy_from(source, stream=stream)
        except TrtcError:
            raise
        except Exception as error:
            raise failure(error, RUNNING) from error

    def wait(self) -> LateOutputs:
        """Wait for the run; return the outputs that have no place in the slot.

        Raises:
            EngineError: when the run failed on the device.
        """
        lane = self._lease.lane
        submitted, self._submitted = self._submitted, False
        try:
            self._opened.device.enter()
            lane.wait()
            if not submitted:
                return {}
            self._run.ended(self._lock)
            names = self._binding.layout.late
            return {n: self._run.late(n).read(self._opened.device, lane.stream, lane.staging) for n in names}
        except TrtcError:
            raise
        except Exception as error:
            raise failure(error, RUNNING) from error

    def cancel(self) -> None:
        """Do nothing: what runs on a device cannot be stopped. Whoever cancels does not get its results."""
