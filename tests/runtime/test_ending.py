"""The end of the interpreter: threads that still call a session neither abort it nor hold it up."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

START = """
import sys, threading
import numpy as np
from trtc.runtime import load

x = np.ones((2, 4), np.float32)
session = load(sys.argv[1], slots=2, threads=1)
other = load(sys.argv[1], slots=1, threads=1)
many = threading.Semaphore(0)

def call():
    while True:
        session.run({"x": x})
        many.release()

threads = [threading.Thread(target=call, daemon=True) for _ in range(6)]
for thread in threads:
    thread.start()
for _ in range(500):
    many.acquire()
"""


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("sys.exit(7)", id="calls-in-flight"),
        pytest.param("other.close(); sys.exit(7)", id="a-closed-session-beside"),
        pytest.param("views = other.borrow({'x': x}).__enter__(); sys.exit(7)", id="an-open-borrow-beside"),
    ],
)
def test_daemon_threads_in_calls_leave_the_exit_code_as_it_is(make_bundle, double_model, last):
    path = make_bundle(double_model, profiles=({"batch": (1, 4)},))
    code = textwrap.dedent(START) + last
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, path], capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (7, "")


def test_no_call_begins_once_slots_are_withheld(make_bundle, double_model):
    code = textwrap.dedent(START) + textwrap.dedent(
        """
        while session.withhold():
            pass
        while many.acquire(blocking=False):
            pass
        assert not many.acquire(timeout=0.05)
        assert session.withhold() == []
        sys.exit(7)
        """
    )
    path = make_bundle(double_model, profiles=({"batch": (1, 4)},))
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (7, "")
