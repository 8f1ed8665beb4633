"""Slots and leases: which call may touch which part of the arena, and when.

A slot moves through four states: free, allocated (a call holds it), initialised (its inputs are written), fenced (work
is submitted; nobody may touch it), and back to free. Each move is checked; a wrong one raises.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from enum import IntEnum
from sys import getrefcount
from threading import Condition
from typing import TYPE_CHECKING, Any

from trtc.profiles import UsageError
from trtc.runtime.errors import LeaseError, SessionClosedError, SlotTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.runtime.arena import Block
    from trtc.runtime.routes import Route

LOOK_AGAIN_S = 1.0
"""How often a waiting caller looks by itself: an interrupt (Ctrl-C) can hit a caller just before it wakes others."""


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

    Nothing but its pool and its holder refers to a slot (engines get the memory, not the slot): that is how a slot
    whose holder was interrupted is found again.

    Attributes:
        index: position in its pool.
        block, buffer, address: its memory.
        routes: prepared routes by the shapes of a request, oldest first.
        state: see ``SlotState``.
        last: the route that ran last; its constant fills are still in place.
    """

    __slots__ = ("address", "block", "buffer", "index", "last", "routes", "state")

    def __init__(self, index: int, block: Block) -> None:
        self.index = index
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
    """All slots of a session; hands each to one caller at a time. Thread-safe under the interpreter lock.

    Taking and returning a slot are single list operations, which the interpreter lock makes atomic; the pool's own
    lock is used only by callers that must wait. A holder ends its lease with ``slot.state = FREE; put(slot)`` and
    no call in between: an interrupt is raised after calls, so none can come between the two.

    Args:
        slots: of the session; the pool keeps this list, and nobody else may keep its slots.
    """

    def __init__(self, slots: list[Slot]) -> None:
        self.slots = slots
        self._free = list(slots)
        self._handed: list[Slot] = []
        self._withheld: list[Slot] = []
        self._freed = Condition()
        self.closed = ""
        self.ending = False
        self.waiting = 0
        self.take: Callable[[], Slot] = self._free.pop
        """Take a free slot at once; IndexError when all are busy."""
        self.put = self._free.append
        """Return a slot whose state is free; then call ``wake`` when anybody is ``waiting``."""

    def wait(self, timeout_s: float | None, reclaim: Callable[[], Slot | None], *, closing: bool = False) -> Slot:
        """Take a slot, waiting while all are busy.

        Args:
            timeout_s: None waits without end.
            reclaim: finds a slot that nobody uses although it is not free, or returns None.
            closing: the caller is the one that closes the session.

        Raises:
            SlotTimeoutError: when none became free in time.
            SessionClosedError: when the session was closed meanwhile.
            UsageError: for a timeout that is negative or no number.
        """
        deadline = None if timeout_s is None else time.monotonic() + _checked(timeout_s)
        with self._freed:
            self.waiting += 1
            try:
                while True:
                    if not closing:
                        self.check_open()
                    while self.ending:
                        self._freed.wait(LOOK_AGAIN_S)
                    try:
                        return (self._handed or self._free).pop()
                    except IndexError:
                        found = reclaim()
                    if found is not None:
                        return found
                    left = math.inf if deadline is None else deadline - time.monotonic()
                    if left <= 0:
                        raise SlotTimeoutError(
                            f"all {len(self.slots)} slots stayed busy for {timeout_s} s; allow more time, or load "
                            "with more slots"
                        )
                    self._freed.wait(min(left, LOOK_AGAIN_S))
            finally:
                self.waiting -= 1
                while len(self._handed) > self.waiting:  # this caller gave up, or took one of the free ones
                    self._free.append(self._handed.pop())

    def check_open(self) -> None:
        """Raise SessionClosedError when the pool was closed (``closed`` says why, and is empty before)."""
        if self.closed:
            raise SessionClosedError(self.closed)

    def wake(self) -> None:
        """Hand a free slot to a caller that waits, before those can take it who have just come."""
        with self._freed:
            if not self.ending and self._free and len(self._handed) < self.waiting:
                with suppress(IndexError):
                    self._handed.append(self._free.pop())
            self._freed.notify()

    def close(self, reason: str) -> None:
        """Refuse everybody who waits, or comes to wait, with a SessionClosedError of this text."""
        self.closed = reason
        with self._freed:
            self._freed.notify_all()

    def abandon(self, reason: str) -> None:
        """Hand out nothing any more. For a forked child, where nobody may hold the lock and nobody releases it."""
        self._freed = Condition()
        self.closed = reason
        self._free.clear()
        self._handed.clear()

    def withhold(self) -> list[int]:
        """Keep back all free slots for good, so that callers wait.

        Takes no lock: at the end of the interpreter anybody may hold it.

        Returns:
            The states of the slots that are still out. One that is borrowed is initialised; so, for a moment, is
            one whose call is about to be submitted.
        """
        self.ending, self.take = True, _none_free
        for slots in (self._free, self._handed):
            with suppress(IndexError):
                while True:
                    self._withheld.append(slots.pop())
        kept = {slot.index for slot in self._withheld}
        return [slot.state for slot in self.slots if slot.index not in kept]

    def lost(self) -> Slot | None:
        """Find a slot that nobody holds and that is not free: its holder was interrupted before it could keep it."""
        for slot, references in zip(self.slots, _references(self.slots), strict=True):
            if references == _UNHELD:
                slot.state = SlotState.FREE
                return slot
        return None


def _references(items: Sequence[object]) -> list[int]:
    return [getrefcount(item) for item in items]


_UNHELD = _references([object()])[0]
"""References to something that only one list holds, as ``_references`` counts them."""


def _none_free() -> Slot:
    raise IndexError


def _checked(timeout_s: float) -> float:
    if not timeout_s >= 0:
        raise UsageError(f"timeout_s={timeout_s}; give seconds, 0 or more, or None to wait without end")
    return timeout_s
