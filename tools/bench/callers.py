"""Several callers at once: threads that begin together, and end together when one of them fails."""

from __future__ import annotations

from threading import Barrier, Event, Thread
from typing import TYPE_CHECKING, TypeAlias

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
    stop, barrier = Event(), Barrier(callers)
    failures: list[BaseException] = []

    def run(caller: int) -> None:
        try:
            barrier.wait()
            work(caller, stop.is_set)
        except BaseException as error:  # noqa: BLE001 (raised again below, in the thread that asked)
            failures.append(error)
            stop.set()

    threads = [Thread(target=run, args=(i,), name=f"caller {i}", daemon=True) for i in range(callers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        stop.set()
        barrier.abort()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        raise
    if failures:
        raise failures[0]
