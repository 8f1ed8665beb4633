"""What the runtime asks of a target: an engine prepares calls, a call is submitted and waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from trtc.engines.layout import HOST_ALIGNMENT_BYTES
from trtc.engines.memory import map_host_memory
from trtc.engines.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from trtc.engines.device_stats import DeviceStats
    from trtc.engines.layout import Layout

LateOutputs: TypeAlias = dict[str, Any]
"""Outputs that have no place in the slot: sized by the data, strings, sequences. The caller owns them."""


class Traits(Value, frozen=True):
    """How an engine is driven.

    Attributes:
        on_device: it takes inputs that lie on its device, and hands out views of outputs there (see ``DeviceEngine``).
        asynchronous: a run is over when ``Call.wait`` has returned; False where it is over when ``enqueue`` has.
        alignment_bytes: at which it wants every place of a slot to start.
        map_memory: maps the memory of its slots: takes bytes, returns a writable buffer that is page-aligned and is
            freed with its last view. A device asks for memory that it can read by itself.
    """

    on_device: bool = False
    asynchronous: bool = False
    alignment_bytes: int = HOST_ALIGNMENT_BYTES
    map_memory: Callable[[int], Any] = map_host_memory


HOST_TRAITS = Traits()
"""Of an engine that computes on the processor, in the caller's thread."""


class Slot(Protocol):
    """The part of the arena that one call uses.

    Attributes:
        buffer: writable bytes of the region; page-aligned start, every place 64-byte aligned.
        address: of the first byte.
        objects: inputs that cannot lie in memory, by name; set before ``enqueue``, read by it.
    """

    buffer: memoryview
    address: int
    objects: dict[str, Any]


class Call(Protocol):
    """One prepared run: sizes, addresses and everything else were bound once. Whoever runs it holds it meanwhile."""

    def enqueue(self) -> None:
        """Submit. Unless the engine is asynchronous (see ``Traits``), the run is over when this returns.

        Raises:
            EngineError: the target's own failure, its message attached.
        """

    def wait(self) -> LateOutputs:
        """Wait for the submitted run. Placed outputs are in the slot afterwards; the others are returned.

        Until then nobody may write the slot, or give its memory away. A call whose submission failed, or was
        interrupted, must be waited for as well.
        """

    def cancel(self) -> None:
        """Ask the run in progress to stop early; from any thread.

        It puts a fresh ``enqueue`` in place for the next run. So whoever may be cancelled reads ``call.enqueue`` before
        others can call this, and calls what was read.
        """


class Engine(Protocol):
    """What one target executes.

    ``prepare`` and the calls of different slots may be used from several threads at once; one call is used by
    one thread at a time.

    Attributes:
        traits: how it is driven; they never change.
    """

    traits: Traits

    def reserve(self, calls: int) -> None:
        """Take what so many calls at once need beside their slots, before the first of them.

        Raises:
            HostError: when it is not there.
        """

    def prepare(self, bucket: Layout, slot: Slot) -> Call:
        """Bind one call: ``bucket`` holds the sizes to run at and the place of each tensor in ``slot``."""

    def close(self) -> None:
        """Free the engine. No call may be in flight."""

    def device_stats(self) -> DeviceStats | None:
        """Return what the engine holds on its device; None where it has none of its own."""


class DeviceCall(Call, Protocol):
    """A call whose inputs may lie on the device, and whose outputs may stay there."""

    def enqueue_on_device(self, inputs: Mapping[str, Any]) -> None:
        """Submit, and leave the outputs on the device.

        Args:
            inputs: those that lie there already, as objects with DLPack; the others are in the slot. The run waits for
                whatever their owners submitted before.

        Raises:
            EngineError: for one of another device, or that is not contiguous; and as ``enqueue``.
        """

    def output_view(self, name: str, region: tuple[slice, ...], owner: object) -> Any:
        """Return a view of a part of an output on the device, as an object with DLPack; for after ``wait``.

        Args:
            name: of the output.
            region: the part, one slice without step for each axis.
            owner: kept alive by the view, and by everything that is made from it through DLPack.
        """


class DeviceEngine(Engine, Protocol):
    """An engine whose ``traits.on_device`` is True."""

    def look(self, value: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return shape and element type of an object on the device, without waiting for anything.

        Raises:
            EngineError: when it is none.
        """

    def part(self, address: int) -> None:
        """Serve the slot whose memory starts at ``address`` from other device memory in future: the old is kept."""
