"""Ctrl-C at any point of a call: the slot comes back, and the next result is right.

Python raises KeyboardInterrupt after calls, at the start of functions and at the end of loop turns. A tracing
function raises it at each of these points in turn, so that every one of them is tried.
"""

from __future__ import annotations

import dis
import sys
from pathlib import Path

import numpy as np
import pytest

import trtc.runtime
from trtc.profiles import PadRule

pytestmark = [
    pytest.mark.filterwarnings("ignore::trtc.runtime.LostLeaseWarning"),
    pytest.mark.filterwarnings("ignore::trtc.runtime.KeptViewWarning"),
    # Python reports an interrupt inside of a finalizer, and goes on.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RUNTIME = str(Path(trtc.runtime.__file__).parent)
POINTS = ("CALL", "RESUME", "JUMP_BACKWARD")


class InterruptAt:
    """Trace functions of the runtime and raise at the n-th point where an interrupt could come."""

    def __init__(self, number):
        self.left = number
        self.after_point = False
        self.hit = False

    def __call__(self, frame, _event, _arg):
        if not frame.f_code.co_filename.startswith(RUNTIME):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self.opcode

    def opcode(self, frame, event, _arg):
        if event != "opcode" or self.hit:
            return self.opcode
        if self.after_point:
            self.after_point = False
            self.left -= 1
            if self.left < 0:
                self.hit = True
                raise KeyboardInterrupt
        name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        self.after_point = name.startswith(POINTS)
        return self.opcode


def interrupted(call, number):
    """Run ``call`` with an interrupt at its n-th point; return the interrupt, or None when there was no such point."""
    tracer = InterruptAt(number)
    error = None
    sys.settrace(tracer)
    try:
        call()
    except KeyboardInterrupt as caught:
        error = caught
    finally:
        sys.settrace(None)
    try:
        return error if tracer.hit else None
    finally:
        del error  # its traceback refers to this frame


@pytest.mark.parametrize("way", ["run", "first-run", "selected", "borrow", "first-borrow", "kept"])
def test_an_interrupt_at_any_point_leaves_the_session_whole(open_bundle, double_model, way):
    session = open_bundle(
        double_model, profiles=({"batch": (1, 4)},), mode="bucket", padding=(PadRule("batch", "rows", {}),), slots=1
    )
    feeds = {"x": np.ones((3, 4), np.float32)}

    def borrow():
        with session.borrow(feeds) as views:
            assert (views["y"] == 2).all()

    kept = []

    def keep():
        with session.borrow(feeds) as views:
            kept.append(views["y"])

    call = {
        "run": lambda: session.run(feeds),
        "first-run": lambda: session.run(feeds),
        "selected": lambda: session.run(feeds, ["y"]),
        "borrow": borrow,
        "first-borrow": borrow,
        "kept": keep,
    }[way]
    session.run(feeds)
    session.run(feeds)
    number = 0
    while True:
        if way.startswith("first"):
            for slot in session._core.pool.slots:
                slot.routes.clear()
            del slot
        error = interrupted(call, number)
        hit = error is not None
        if way in ("borrow", "first-borrow", "kept"):
            # Its traceback holds the borrow, and with it the lease. A run must not be held by its own traceback.
            error = None
        for batch in (3, 2, 3):
            x = np.full((batch, 4), number, np.float32)
            found = session.run({"x": x}, timeout_s=0)["y"]
            assert found.tolist() == (2 * x).tolist(), f"wrong after an interrupt at point {number}"
        assert all((view == 2).all() for view in kept), f"a kept view changed after an interrupt at point {number}"
        kept.clear()
        if not hit:
            break
        number += 1
    assert number > 3, "the tracing function must have found points to interrupt"
