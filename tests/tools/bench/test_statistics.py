"""Figures of times, and whether a difference is one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trtc.profiles import UsageError
from trtc.tools.bench import Budget, Rounds, alternate, ratio_of, summarise
from trtc.tools.bench.summary import percentile

TIMES = st.lists(st.floats(1e-7, 10), min_size=1, max_size=60)


@given(times=TIMES, share=st.floats(0, 100))
def test_a_percentile_is_a_time_that_occurred_and_that_so_many_do_not_exceed(times, share):
    ordered = np.sort(times)
    found = percentile(ordered, share)
    assert found in times
    assert (ordered <= found).mean() * 100 >= share - 1e-6
    below = ordered[ordered < found]
    assert not below.size or below.size / ordered.size * 100 < share + 1e-6


@given(times=TIMES)
def test_figures_of_a_series_are_ordered(times):
    found = summarise(times, (0, 50, 90, 95, 99, 100))
    assert list(found.percentiles_s.values()) == sorted(found.percentiles_s.values())
    assert found.min_s == found.percentiles_s["p0"] <= found.median_s <= found.max_s == found.percentiles_s["p100"]
    assert found.min_s <= found.mean_s * (1 + 1e-9)
    assert found.count == len(times)
    assert found.spread >= 0


def test_the_figures_of_a_known_series():
    found = summarise([i / 1000 for i in range(1, 1001)], (90, 99.9))
    assert found.percentiles_s == {"p90": 0.9, "p99.9": 0.999}
    assert found.median_s == pytest.approx(0.5005)
    assert found.spread == pytest.approx(0.5 / 0.5005)


def test_no_times_have_no_figures():
    with pytest.raises(UsageError, match="no call was timed"):
        summarise([])


def rounds(ours, peer, noise, seed=0):
    rng = np.random.default_rng(seed)
    drift = rng.lognormal(0, noise, (40, 1))  # what the machine does in a round, to both sides
    return Rounds(*(side * drift * rng.lognormal(0, 0.01, (40, 8)) for side in (ours, peer)))


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        pytest.param(1.0, "noise", id="same"),
        pytest.param(0.8, "faster", id="20-percent"),
        pytest.param(1.3, "slower", id="30-percent"),
    ],
)
def test_a_difference_is_told_from_noise_although_the_machine_wavers(ours, verdict):
    found = ratio_of(rounds(ours, 1.0, noise=0.3))
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(ours, rel=0.05)


@settings(max_examples=15)
@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 20))
def test_a_ratio_does_not_depend_on_the_unit(scale, seed):
    base = rounds(1.1, 1.0, 0.1, seed)
    scaled = Rounds(base.ours_s * scale, base.peer_s * scale)
    a, b = ratio_of(base), ratio_of(scaled)
    assert (a.ratio, a.low, a.high) == pytest.approx((b.ratio, b.low, b.high))


def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says():
    hits = sum((r := ratio_of(rounds(1.05, 1.0, 0.3, seed))).low <= 1.05 <= r.high for seed in range(40))
    assert hits >= 33


def test_rounds_take_turns_and_who_begins_changes(clock):
    made = []

    def side(name, seconds):
        def call(_):
            made.append(name)
            clock.s += seconds

        return call

    found = alternate((side("a", 0.001), [0]), (side("b", 0.002), [0]), Budget(10, 0), clock)
    # Each side makes a call that is not timed and one that is, in every round.
    assert made[:8] == ["a", "a", "b", "b", "b", "b", "a", "a"]
    assert found.ours_s.shape == found.peer_s.shape
    assert ratio_of(found).ratio == pytest.approx(0.5)


def test_a_ratio_is_that_of_the_two_medians_that_stand_beside_it():
    """A round counts by its median call, and a side by the median of its rounds: not by the median of all calls."""
    ours = np.array([[1.0, 2.0, 9.0], [3.0, 4.0, 5.0], [1.0, 1.0, 8.0]])
    peer = np.array([[4.0, 4.0, 4.0], [5.0, 5.0, 1.0], [6.0, 7.0, 6.0]])
    found = ratio_of(Rounds(ours, peer))
    assert (found.ours_s, found.peer_s, found.ratio) == (2.0, 5.0, 2.0 / 5.0)
    assert np.median(ours) == 3.0


def test_a_rest_before_each_turn_is_in_no_figure(clock):
    begun = []

    def call(_):
        begun.append(clock.s)
        clock.s += 0.001

    found = alternate((call, [0]), (call, [0]), Budget(10, 0), clock, 0.05)
    np.testing.assert_allclose(np.concatenate([found.ours_s, found.peer_s]), 0.001)
    # Two calls a turn, one right after the other; turns are 50 ms apart.
    np.testing.assert_allclose(np.diff(begun)[:5], [0.001, 0.051, 0.001, 0.051, 0.001], atol=1e-9)


def test_rounds_fill_the_time_of_the_budget(clock):
    def call(_):
        clock.s += 0.001

    found = alternate((call, [0, 1]), (call, [0, 1]), Budget(10, 2.0), clock)
    assert found.ours_s.sum() >= 2.0
    assert 10 <= found.ours_s.shape[0] <= 60
