"""The end of a session: close, with, pickle, fork."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from trtc.runtime import Arena, SessionClosedError, load

F = np.float32
FEEDS = {"x": np.ones((2, 4), F)}


@pytest.fixture
def path(make_bundle, double_model):
    return make_bundle(double_model, profiles=({"batch": (1, 4)},))


def test_close_waits_for_a_call_in_flight(path):
    session = load(path, slots=2, threads=1, arena=Arena())
    with ThreadPoolExecutor(1) as pool:
        with session.borrow(FEEDS) as views:
            closing = pool.submit(session.close)
            while not session._core.pool.waiting and not closing.done():
                pass
            assert not closing.done()
            assert views["y"].sum() == 16
            with pytest.raises(SessionClosedError):
                session.run(FEEDS)
        closing.result()
    assert session.stats.arena.in_use_bytes == 0


def test_a_call_that_waits_for_a_slot_is_told_that_the_session_was_closed(path):
    session = load(path, slots=1, threads=1, arena=Arena())
    with ThreadPoolExecutor(2) as pool:
        with session.borrow(FEEDS):
            waiting = pool.submit(session.run, FEEDS)
            while not session._core.pool.waiting and not waiting.done():
                pass
            closing = pool.submit(session.close)
            with pytest.raises(SessionClosedError):
                waiting.result()
        closing.result()


def test_every_use_after_close_is_an_error_and_closing_again_is_not(path):
    session = load(path, slots=1, threads=1, arena=Arena())
    session.run(FEEDS)
    prepared = session.borrow(FEEDS)
    session.close()
    session.close()
    for use in (
        lambda: session.run(FEEDS),
        lambda: session.run(FEEDS, ["y"]),
        lambda: session.run(FEEDS, timeout_s=0),
        lambda: session.run({}),
        lambda: session.borrow(FEEDS),
        prepared.__enter__,
    ):
        with pytest.raises(SessionClosedError, match=f"{path.name} is closed.*load the bundle again"):
            use()
    assert session.stats.arena.in_use_bytes == 0
    assert session.explain({"batch": 2}).profile == "p0"


def test_threads_that_close_together_all_return_when_it_is_closed(path):
    session = load(path, slots=2, threads=1, arena=Arena())
    with ThreadPoolExecutor(4) as pool:
        for closed in [pool.submit(session.close) for _ in range(4)]:
            closed.result()
    assert session.stats.arena.in_use_bytes == 0


def test_threads_that_run_while_another_closes_get_right_results_or_the_error(path):
    for _ in range(10):
        session = load(path, slots=2, threads=1, arena=Arena())

        def work(number, session=session):
            x = np.full((2, 4), number, F)
            try:
                while True:
                    assert (session.run({"x": x})["y"] == 2 * number).all()
            except SessionClosedError:
                return True

        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(work, number) for number in range(3)]
            while session.stats.routes_prepared < 1:
                pass
            session.close()
            assert all(result.result() for result in running)
        assert session.stats.arena.in_use_bytes == 0


def test_a_with_block_closes_also_after_an_error(path):
    with pytest.raises(ZeroDivisionError), load(path, slots=1, threads=1, arena=Arena()) as session:
        raise ZeroDivisionError
    with pytest.raises(SessionClosedError):
        session.run(FEEDS)


def test_an_interrupted_close_can_be_finished(path, monkeypatch):
    session = load(path, slots=3, threads=1, arena=Arena())
    release = session._core._arena.release_after
    calls = []

    def interrupt(block, views):
        release(block, views)
        calls.append(block)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(session._core._arena, "release_after", interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.close()
    session.close()
    assert len(calls) == len({block.address for block in calls}) == 3
    assert session.stats.arena.in_use_bytes == 0


def test_a_session_pickles_by_its_path_and_options(path, monkeypatch, tmp_path):
    monkeypatch.chdir(path.parent)
    with load(path.name, slots=3, threads=1, max_memory_bytes=10**7) as session:
        data = pickle.dumps(session)
        monkeypatch.chdir(tmp_path)
        with pickle.loads(data) as again:  # noqa: S301 (made two lines above)
            np.testing.assert_array_equal(again.run(FEEDS)["y"], session.run(FEEDS)["y"])
            assert again.stats.slots == 3
            assert again._loaded.arena is not session._loaded.arena
            assert again._loaded.arena.max_bytes == 10**7


def test_a_budget_of_nothing_survives_pickling(path):
    from trtc.runtime.loader import load_again

    with load(path, slots=1, threads=1, max_memory_bytes=4096) as session:
        function, (_, options) = session.__reduce__()
        assert function is load_again
        assert options["max_memory_bytes"] == 4096


def wait_for_child(pid):
    """Return the exit code of a child, or kill it after 30 s and say so."""

    def late(*_):
        os.kill(pid, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def in_child(function):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = function() or 0
        finally:
            os._exit(code)
    return wait_for_child(pid)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_a_clear_error_and_its_parent_goes_on(path):
    with load(path, slots=2, threads=4, arena=Arena()) as session:
        session.run(FEEDS)
        prepared = session.borrow(FEEDS)

        def child():
            uses = (
                lambda: session.run(FEEDS),
                lambda: session.run(FEEDS, ["y"]),
                lambda: session.borrow(FEEDS),
                prepared.__enter__,
            )
            for use in uses:
                try:
                    use()
                except SessionClosedError as error:
                    if "forked" not in str(error):
                        return 3
                else:
                    return 4
            session.close()
            with load(path, slots=1, threads=1, arena=Arena()) as own:
                return 0 if own.run(FEEDS)["y"].sum() == 16 else 5

        assert in_child(child) == 0
        assert session.run(FEEDS)["y"].sum() == 16


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_inside_a_borrow_block_leaves_both_sides_whole(path):
    with load(path, slots=1, threads=4, arena=Arena()) as session:
        with session.borrow(FEEDS) as views:

            def child():
                return 0 if views["y"].sum() == 16 else 3

            assert in_child(child) == 0
            assert views["y"].sum() == 16
        assert session.run(FEEDS)["y"].sum() == 16


@pytest.mark.parametrize(
    ("end", "code"), [("del session", 0), ("pass", 0), ("session.close()", 0), ("del session; gc.collect()", 7)]
)
def test_a_child_that_drops_the_session_and_ends_like_a_program_keeps_its_exit_code(path, end, code):
    """In a process of its own: the child runs the whole shutdown of Python, not only ``os._exit``."""
    program = f"""
        import gc, os, signal, sys
        import numpy as np
        from trtc.runtime import load
        session = load({str(path)!r}, slots=2, threads=4)
        feeds = {{"x": np.ones((2, 4), np.float32)}}
        session.run(feeds)
        pid = os.fork()
        if pid == 0:
            {end}
            gc.collect()
            print("printed by the child")
            sys.exit({code})
        signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
        signal.alarm(30)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert session.run(feeds)["y"].sum() == 16
        session.close()
        sys.exit(code if code >= 0 else 100 - code)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "printed by the child\n", "")
