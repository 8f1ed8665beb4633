"""Several callers at once: threads that begin together, and end together when one of them fails."""

from __future__ import annotations

from functools import partial
from threading import Barrier, Event
from typing import TYPE_CHECKING, TypeAlias

from trtc.engines.at_once import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    Work: TypeAlias = Callable[[int, Callable[[], bool]], None]


def together(work: Work, callers: int) -> None:
    """Run ``work(caller, stopped)`` for each caller; one caller runs in this thread.

    Args:
        work: returns when it is done, or soon after ``stopped()`` says so.
        callers: how many.

    Raises:
        What the first caller that failed raised, or an interrupt of this thread, when all have ended.
    """
    if callers == 1:
        work(0, lambda: False)
        return
    stopped, barrier = Event(), Barrier(callers)
    failures: list[BaseException] = []

    def run(caller: int) -> None:
        try:
            barrier.wait()
            work(caller, stopped.is_set)
        except BaseException as error:  # noqa: BLE001 (raised again below, in the thread that asked)
            failures.append(error)
            stopped.set()

    def stop() -> None:
        stopped.set()
        barrier.abort()

    at_once([partial(run, i) for i in range(callers)], stop)
    if failures:
        raise failures[0]
