"""Cancelling a call from another thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from trtc.runtime import CancelledError, CancelToken, EngineError, UsageError

X = np.full((64, 64), 2, np.float32)
SHORT = {"turns": np.array(3), "x": X}
LONG = {"turns": np.array(10**9), "x": X}


@pytest.fixture
def session(open_bundle, million_turns):
    return open_bundle(million_turns, slots=1)


def cancel_when_running(session, token):
    """Cancel as soon as the call stands in its slot."""
    (slot,) = session._core.pool.slots
    while slot.state != 3 and not token.cancelled:
        pass
    del slot
    token.cancel()


@pytest.mark.parametrize("warm", [0, 1, 2, 3])
def test_a_running_call_stops_and_the_next_one_is_right(session, warm):
    for _ in range(warm):
        assert (session.run(SHORT)["y"] == 2).all()
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            token = CancelToken()
            canceller = pool.submit(cancel_when_running, session, token)
            with pytest.raises(CancelledError, match="the call was cancelled"):
                session.run(LONG, cancel=token)
            canceller.result()
            assert token.cancelled
            for _ in range(3):
                assert (session.run(SHORT)["y"] == 2).all()
            assert (session.run(SHORT, cancel=CancelToken())["y"] == 2).all()


def test_a_call_with_late_outputs_stops_as_well(open_bundle, graphs, million_turns):
    import onnx

    loop = million_turns.graph.node[0]
    model = graphs.model(
        [loop, graphs.node("NonZero", ["y"], ["where"])],
        list(million_turns.graph.input),
        [graphs.value("where", (2, None), onnx.TensorProto.INT64)],
        initializers=tuple(million_turns.graph.initializer),
    )
    session = open_bundle(model, slots=1)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            token = CancelToken()
            canceller = pool.submit(cancel_when_running, session, token)
            with pytest.raises(CancelledError):
                session.run(LONG, cancel=token)
            canceller.result()
            assert session.run(SHORT)["where"].shape == (2, 64 * 64)


def test_a_cancelled_token_stops_a_call_before_it_starts(session):
    token = CancelToken()
    token.cancel()
    token.cancel()
    with pytest.raises(CancelledError, match="before it started; use a new token"):
        session.run(SHORT, cancel=token)
    assert (session.run(SHORT)["y"] == 2).all()


def test_a_token_that_is_cancelled_after_its_call_changes_nothing(session):
    for _ in range(3):
        token = CancelToken()
        session.run(SHORT, cancel=token)
        token.cancel()
        assert (session.run(SHORT)["y"] == 2).all()


def test_a_token_can_serve_one_call_after_the_other_but_not_two_at_once(open_bundle, million_turns):
    session = open_bundle(million_turns, slots=2)
    token = CancelToken()
    for _ in range(2):
        session.run(SHORT, cancel=token)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, LONG, cancel=token)
        while token._call is None and not running.done():
            pass
        with pytest.raises(UsageError, match="one token for each call"):
            session.run(SHORT, cancel=token)
        token.cancel()
        with pytest.raises(CancelledError):
            running.result()


def test_a_cancel_between_reading_the_call_and_running_it_is_not_lost(session):
    """The call is stopped in the very moment after the token took it over, or before where nothing keeps it from it."""
    token = CancelToken()

    class Late:
        """Cancels when the token reads what to run."""

        def __init__(self, call):
            self._call = call

        @property
        def enqueue(self):
            if not token._lock.locked():
                token.cancel()
            run = self._call.enqueue

            def cancelled_first():
                if not token.cancelled:
                    token.cancel()
                run()

            return cancelled_first

        def cancel(self):
            self._call.cancel()

    session.run(SHORT)
    session.run(SHORT)
    for warm in range(3):
        (slot,) = session._core.pool.slots
        (route,) = slot.routes.values()
        del slot
        with pytest.raises(CancelledError):
            CancelToken.run(token, Late(route.call))
        token = CancelToken()
        for _ in range(warm):
            assert (session.run(SHORT)["y"] == 2).all()


def test_a_cancelled_error_is_an_engine_error():
    assert issubclass(CancelledError, EngineError)
