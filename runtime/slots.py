"""Slots and leases: which call may touch which part of the arena, and when.

A slot moves through four states: free, allocated (a call holds it), initialised (its inputs are written), fenced (work
is submitted; nobody may touch it), and back to free. Each move is checked; a wrong one raises.
"""

from __future__ import annotations

import time
from enum import IntEnum
from threading import Condition
from typing import TYPE_CHECKING, Any

from trtc.runtime.errors import LeaseError, SlotTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.runtime.arena import Block
    from trtc.runtime.routes import Route


class SlotState(IntEnum):
    """Where a slot is in the life of a call."""

    FREE = 0
    ALLOCATED = 1
    INITIALISED = 2
    FENCED = 3


_MOVES = frozenset(
    [
        (SlotState.FREE, SlotState.ALLOCATED),
        (SlotState.ALLOCATED, SlotState.INITIALISED),
        (SlotState.INITIALISED, SlotState.FENCED),
        (SlotState.FENCED, SlotState.INITIALISED),  # the work is over, its results lie in the slot
        (SlotState.ALLOCATED, SlotState.FREE),  # a request that failed before it ran
        (SlotState.INITIALISED, SlotState.FREE),
    ]
)


class Slot:
    """The part of the arena that one call uses. Only the holder of its lease may touch it.

    Attributes:
        index: position in its pool.
        buffer, address: its memory (see ``trtc.engines.protocol.Slot``).
        objects: inputs that cannot lie in memory.
        routes: prepared routes by the shapes of a request, oldest first.
        state: see ``SlotState``.
        last: the route that ran last; its constant fills are still in place.
    """

    __slots__ = ("address", "block", "buffer", "index", "last", "objects", "routes", "state")

    def __init__(self, index: int, block: Block) -> None:
        self.index = index
        self.objects: dict[str, Any] = {}
        self.routes: dict[Any, Route] = {}
        self.last: Route | None = None
        self.state: int = SlotState.FREE
        self.replace_memory(block)

    def replace_memory(self, block: Block) -> None:
        """Take another block; everything that was prepared on the old one is forgotten."""
        self.routes.clear()
        self.last = None
        self.block = block
        self.buffer = block.buffer
        self.address = block.address

    def move(self, to: SlotState) -> None:
        """Go to another state.

        Raises:
            LeaseError: when that move is not allowed from here.
        """
        if (self.state, to) not in _MOVES:
            raise LeaseError(
                f"slot {self.index} is {SlotState(self.state).name.lower()} and cannot become {to.name.lower()}; "
                "a slot is touched by the holder of its lease only, and never while work is submitted"
            )
        self.state = to


class SlotPool:
    """All slots of a session; hands each to one caller at a time. Thread-safe.

    Taking and returning a slot are single list operations, which Python makes atomic; the lock is used only by
    callers that must wait.
    """

    def __init__(self, slots: Sequence[Slot], reclaim: Callable[[], Slot | None]) -> None:
        self._free = list(slots)
        self._reclaim = reclaim
        self._freed = Condition()
        self.waiting = 0
        self.take = self._free.pop
        """Take a free slot at once; IndexError when all are busy."""

    def wait(self, timeout_s: float | None) -> Slot:
        """Take a slot, waiting while all are busy.

        Raises:
            SlotTimeoutError: when none became free in time.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._freed:
            self.waiting += 1
            try:
                while True:
                    try:
                        return self._free.pop()
                    except IndexError:
                        reclaimed = self._reclaim()
                    if reclaimed is not None:
                        return reclaimed
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        raise SlotTimeoutError(
                            f"all slots stayed busy for {timeout_s} s; allow more time, or load with more slots"
                        )
                    self._freed.wait(left)
            finally:
                self.waiting -= 1

    def give(self, slot: Slot) -> None:
        """Return a slot; its state must be free."""
        self._free.append(slot)
        if self.waiting:
            self.wake()

    def wake(self) -> None:
        """Let a waiting caller look again."""
        with self._freed:
            self._freed.notify()
