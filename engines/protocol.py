"""What the runtime asks of a target: an engine prepares calls, a call is submitted and waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from trtc.engines.layout import Layout

LateOutputs: TypeAlias = dict[str, Any]
"""Outputs that have no place in the slot: sized by the data, strings, sequences. The caller owns them."""


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
        """Submit. A CPU engine has finished when this returns.

        Raises:
            EngineError: the target's own failure, its message attached.
        """

    def wait(self) -> LateOutputs:
        """Wait for the submitted run. Placed outputs are in the slot afterwards; the others are returned."""

    def cancel(self) -> None:
        """Ask the run in progress to stop early; from any thread.

        It puts a fresh ``enqueue`` in place for the next run. So whoever may be cancelled reads ``call.enqueue`` before
        others can call this, and calls what was read.
        """


class Engine(Protocol):
    """What one target executes.

    ``prepare`` and the calls of different slots may be used from several threads at once; one call is used by
    one thread at a time.
    """

    def prepare(self, bucket: Layout, slot: Slot) -> Call:
        """Bind one call: ``bucket`` holds the sizes to run at and the place of each tensor in ``slot``."""

    def close(self) -> None:
        """Free the engine. No call may be in flight."""
