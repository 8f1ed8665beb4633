"""What a build tries and says about calls at once and threads, on figures that are made up."""

from __future__ import annotations

import pytest

from trtc.compiler.measure import ways_of
from trtc.compiler.trade_off import lone_call_text
from trtc.engines.manifest import Execution
from trtc.tools.planned import runs_text


@pytest.mark.parametrize("callers", [0, 1, 2, 3, 5, 16, 100])
@pytest.mark.parametrize("allowed", [1, 2, 3, 6, 16, 64])
def test_no_way_asks_for_a_processor_twice_or_for_more_callers_than_there_are(allowed, callers):
    ways = ways_of(allowed, callers)
    assert all(slots * threads <= allowed for slots, threads in ways)
    assert max(slots for slots, _ in ways) == min(callers or allowed, allowed)
    assert (1, allowed) in ways
    assert len(set(ways)) == len(ways)


@pytest.mark.parametrize(
    ("allowed", "callers", "ways"),
    [
        pytest.param(2, 0, [(2, 1), (1, 2)], id="two-processors"),
        pytest.param(6, 0, [(6, 1), (3, 2), (1, 4), (1, 6)], id="six-processors"),
        pytest.param(6, 1, [(1, 1), (1, 2), (1, 4), (1, 6)], id="one-caller-tries-every-number-of-threads"),
        pytest.param(16, 3, [(3, 1), (3, 2), (3, 4), (3, 5), (2, 8), (1, 16)], id="three-callers-share-evenly"),
    ],
)
def test_ways_share_the_processors(allowed, callers, ways):
    assert ways_of(allowed, callers) == ways


LONE_S = {(2, 1): 2.4e-3, (1, 2): 1.3e-3}


def test_what_a_lone_caller_pays_is_said_with_the_way_out():
    text = "a lone call takes 2.4 ms; with 2 threads 1.3 ms: build with --callers 1 if calls come one by one"
    assert lone_call_text(LONE_S, (2, 1)) == text


def test_nothing_is_advised_where_a_lone_caller_pays_nothing():
    assert lone_call_text(LONE_S, (1, 2)) == "a lone call takes 1.3 ms"
    assert lone_call_text({(2, 1): 1.31e-3, (1, 2): 1.3e-3}, (2, 1)) == "a lone call takes 1.31 ms"
    assert lone_call_text({(1, 1): 2e-3, (1, 2): 1e-3}, (1, 1)) == "a lone call takes 2 ms"
    assert lone_call_text({}, (2, 1)) == ""


@pytest.mark.parametrize(
    ("execution", "text"),
    [
        (Execution(mode="exact", slots=2, threads=1, reason="so"), "exact, 2 calls at once, 1 thread each: so"),
        (
            Execution(mode="bucket", slots=1, threads=4, reason="so"),
            "padded to the bucket, 1 call at a time, 4 threads: so",
        ),
        (Execution(mode="exact", slots=1, reason="so"), "exact, 1 call at a time, all threads: so"),
        (Execution(mode="exact"), "exact: no reason was recorded"),
    ],
)
def test_how_requests_run_is_said_once(execution, text):
    assert runs_text(execution) == f"requests run {text}"
