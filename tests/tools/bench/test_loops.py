"""Closed and open loop, on a clock of the test's own."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import UsageError
from trtc.tools.bench import Arrivals, Budget, MonotonicClock, closed_loop, open_loop, summarise

SERVICE_S, STALL_S, EVERY_S = 0.001, 0.050, 0.010
SLOW_S = 2 * SERVICE_S


def test_an_open_loop_shows_the_queue_behind_a_stall_that_a_closed_loop_hides(clock, calls):
    calls.stalls = {50: STALL_S}
    closed = closed_loop(calls, [SERVICE_S], Budget(100, 0), clock)
    calls.made.clear()
    opened = open_loop(calls, [SERVICE_S], np.arange(100) * EVERY_S, clock)
    assert int((closed.latency_s > SLOW_S).sum()) == 1
    # The stalled call takes 51 ms; those meant for 10, 20, 30, 40 and 50 ms later begin when the one before has ended.
    slow = opened.latency_s[opened.latency_s > SLOW_S]
    np.testing.assert_allclose(slow, [0.051, 0.042, 0.033, 0.024, 0.015, 0.006], atol=1e-9)
    assert int((opened.service_s > SLOW_S).sum()) == 1
    p95_closed, p95_open = (summarise(s.latency_s).percentiles_s["p95"] for s in (closed, opened))
    assert p95_closed == pytest.approx(SERVICE_S)
    assert p95_open == pytest.approx(0.006)


@pytest.mark.parametrize(
    ("iterations", "duration_s", "expected"),
    [
        pytest.param(10, 0.0, 10, id="calls-decide"),
        pytest.param(1, 0.0205, 21, id="time-decides"),
        pytest.param(30, 0.0205, 30, id="both-must-be-met"),
    ],
)
def test_a_closed_loop_ends_when_calls_and_time_are_enough(clock, calls, iterations, duration_s, expected):
    samples = closed_loop(calls, [SERVICE_S], Budget(iterations, duration_s), clock)
    assert samples.count == len(calls.made) == expected
    assert samples.per_second == pytest.approx(1 / SERVICE_S)


@pytest.mark.parametrize("loop", ["closed", "open"])
def test_requests_are_sent_in_their_order_over_and_over(clock, calls, loop):
    requests = [0.001, 0.002, 0.003]
    if loop == "closed":
        samples = closed_loop(calls, requests, Budget(7, 0), clock)
    else:
        samples = open_loop(calls, requests, np.arange(7) * 1.0, clock)
    assert calls.made == [*requests, *requests, 0.001]
    assert samples.request.tolist() == [0, 1, 2, 0, 1, 2, 0]
    np.testing.assert_allclose(samples.service_s[samples.request == 1], 0.002)


@given(gaps=st.lists(st.floats(0, 0.02), min_size=1, max_size=40), services=st.lists(st.floats(1e-4, 0.03), min_size=1))
def test_the_open_loop_is_the_queue_of_one_server(gaps, services):
    """Lindley's recursion: a call begins when it should, or when the one before ends."""
    from tests.tools.bench.conftest import Calls, FakeClock

    clock = FakeClock()
    starts = np.cumsum(gaps)
    samples = open_loop(Calls(clock), services, starts, clock)
    free = 0.0
    for i, start in enumerate(starts):
        begun = max(start, free)
        free = begun + services[i % len(services)]
        assert samples.latency_s[i] == pytest.approx(free - start, abs=1e-9)


def test_several_callers_share_the_calls_and_each_call_is_made_once():
    seen, lock = [], threading.Lock()

    def call(request):
        with lock:
            seen.append((request, threading.get_ident()))

    samples = closed_loop(call, list(range(50)), Budget(50, 0), MonotonicClock(), callers=4)
    assert sorted(request for request, _ in seen) == list(range(50))
    assert sorted(samples.request.tolist()) == list(range(50))
    opened = open_loop(call, list(range(50)), np.zeros(50), MonotonicClock(), callers=4)
    assert sorted(opened.request.tolist()) == list(range(50))


@pytest.mark.parametrize("callers", [1, 3])
@pytest.mark.parametrize("loop", ["closed", "open"])
def test_a_call_that_fails_ends_the_measurement_with_its_own_error(loop, callers):
    def call(request):
        raise KeyError(request)

    if loop == "closed":
        with pytest.raises(KeyError, match="wrong"):
            closed_loop(call, ["wrong"], Budget(), MonotonicClock(), callers)
    else:
        with pytest.raises(KeyError, match="wrong"):
            open_loop(call, ["wrong"], np.zeros(5), MonotonicClock(), callers)


@pytest.mark.parametrize("kind", ["even", "poisson"])
def test_arrivals_keep_their_rate(kind):
    starts = Arrivals(200.0, kind, seed=1).starts_s(10, 50.0)
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    assert starts.size / starts[-1] == pytest.approx(200, rel=0.05)


@pytest.mark.parametrize("rate", [0.0, -5.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(UsageError, match="give a number above 0"):
        Arrivals(rate)


def test_more_arrivals_than_memory_keeps_are_refused_before_anything_runs():
    with pytest.raises(UsageError, match="lower the rate or the duration"):
        Arrivals(1e9).starts_s(10, 3.0)


@pytest.mark.parametrize("wrong", [(0, 1.0, 0.0), (1, -1.0, 0.0), (1, float("nan"), 0.0), (1, 1.0, float("inf"))])
def test_a_budget_of_nothing_is_refused(wrong):
    with pytest.raises(UsageError):
        Budget(*wrong)
