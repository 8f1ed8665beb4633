"""One prepared call: copies in, one run, copies out, all submitted at once on the lane's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.engines.tensorrt.context_run import RUNNING
from trtc.engines.tensorrt.device_views import foreign_tensor, view_of
from trtc.engines.tensorrt.failures import failure
from trtc.engines.tensorrt.spans import plan_device
from trtc.profiles import TrtcError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import Lock

    from trtc.engines.layout import Layout
    from trtc.engines.protocol import LateOutputs, Slot
    from trtc.engines.tensorrt.context_run import Binding, ContextRun
    from trtc.engines.tensorrt.lane import Lease
    from trtc.engines.tensorrt.opened import OpenedEngine
    from trtc.engines.tensorrt.spans import Span


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
        self._slot_address = slot.address
        self._submitted = False
        self._foreign: list[Any] = []
        self._to_device = self._copies(self._binding.plan.to_device)
        self._to_host = tuple((host, device) for device, host in self._copies(self._binding.plan.to_host))

    def _copies(self, spans: tuple[Span, ...]) -> tuple[tuple[Any, Any], ...]:
        """Views of both sides of each span: (device, host)."""
        region, view = self._lease.lane.region.address, self._opened.device.view
        return tuple(
            (view(region + span.device, span.size_bytes), view(self._slot_address + span.host, span.size_bytes))
            for span in spans
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
        self._submit(self._to_device, {}, self._to_host)

    def enqueue_on_device(self, inputs: Mapping[str, Any]) -> None:
        """Submit with some inputs from the device, and leave the outputs there; see ``DeviceCall``."""
        layout = self._binding.layout
        plan = plan_device(layout, self._opened.on_host | inputs.keys())
        self._submit(self._copies(plan.to_device), inputs, ())

    def output_view(self, name: str, region: tuple[slice, ...], owner: object) -> Any:
        """Return a view of an output on the device; see ``DeviceCall``."""
        address = self._lease.lane.region.address + self._binding.plan.offsets[name]
        return view_of(self._opened.device, self._binding.layout.outputs[name], address, region, (owner, self._lease))

    def _submit(
        self, to_device: Sequence[tuple[Any, Any]], foreign: Mapping[str, Any], to_host: Sequence[tuple[Any, Any]]
    ) -> None:
        lane, device = self._lease.lane, self._opened.device
        stream: Any = lane.stream
        region = lane.region.address
        try:
            device.enter()
            if lane.busy:  # a run that was interrupted before anybody waited for it
                lane.wait()
            lane.busy = True
            for target, source in to_device:
                target.copy_from(source, stream=stream)
            for name, value in foreign.items():
                place = self._binding.layout.inputs[name]
                found = foreign_tensor(device, value, place, stream)
                self._foreign.append(found)  # alive until the run is over
                if place.size_bytes:
                    target = device.view(region + self._binding.plan.offsets[name], place.size_bytes)
                    target.copy_from(device.view(found.ptr, place.size_bytes), stream=stream)
            self._run.start(self._binding, region)
            self._submitted = True
            for target, source in to_host:
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
            self._foreign.clear()
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
