"""Calls of an engine from several threads: what starts them returns when none is inside any more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def at_once(tasks: Sequence[Callable[[], None]], stop: Callable[[], None]) -> None:
    """Run tasks, each in a thread of its own, and return when all have ended.

    When the wait is interrupted, those that have begun end first and the others never begin: an engine must not be
    closed, nor the interpreter leave, while a thread is still inside a library. (``Thread.join`` does not tell: on
    Python 3.11 a thread whose ``join`` was interrupted counts as ended.)

    Args:
        tasks: what to run.
        stop: asks them to end soon.
    """
    ended = [threading.Event() for _ in tasks]
    lock = threading.Lock()
    begun: list[int] = []
    interrupted = False

    def run(i: int) -> None:
        with lock:
            if interrupted:
                return
            begun.append(i)
        try:
            tasks[i]()
        finally:
            ended[i].set()

    try:
        for i in range(len(tasks)):
            threading.Thread(target=run, args=(i,)).start()
        for event in ended:
            event.wait()
    except BaseException:
        stop()
        with lock:
            interrupted = True
        for i in begun:
            ended[i].wait()
        raise
