"""Picking many at once, and by a table, is the rule of the ladder; and an evaluation adds up what the rule picks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import CheckError, Ladder, Profile, Range, RequestError
from trtc.profiles.cost import CostModel, element_cost
from trtc.profiles.evaluation import evaluate_ladder, pick_rows
from trtc.profiles.pick_table import pick_table
from trtc.profiles.traffic import traffic_from_rows

CLOSED = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda ends: Range(min(ends), max(ends), max(ends)))
ANY = CLOSED | st.integers(0, 6).map(lambda low: Range(low, None, None))
SIZES = [(b, s) for b in range(9) for s in range(9)]
PADDED = st.frozensets(st.sampled_from(["batch", "seq"]))


@st.composite
def ladders(draw, ranges):
    found = draw(st.lists(st.fixed_dictionaries({"batch": ranges, "seq": ranges}), min_size=1, max_size=5))
    cost_s = draw(st.just(()) | st.tuples(*[st.sampled_from([0.5, 1.0, 2.0])] * len(found)))
    return Ladder(tuple(Profile(f"p{i}", r) for i, r in enumerate(found)), cost_s)


def picked_one_by_one(ladder, padded):
    found = []
    for batch, seq in SIZES:
        try:
            found.append(ladder.pick({"batch": batch, "seq": seq}, padded))
        except RequestError:
            found.append(-1)
    return found


@given(ladder=ladders(ANY), padded=PADDED)
def test_many_are_picked_as_each_alone(ladder, padded):
    found = pick_rows(ladder, ("batch", "seq"), np.array(SIZES, np.int64), padded)
    assert found.tolist() == picked_one_by_one(ladder, padded)


@given(ladder=ladders(CLOSED), padded=PADDED)
def test_the_table_picks_what_the_rule_picks(ladder, padded):
    table = pick_table(ladder, ("batch", "seq"), padded)
    assert [table.pick({"batch": b, "seq": s}) for b, s in SIZES] == picked_one_by_one(ladder, padded)


@given(ladder=ladders(ANY), padded=PADDED)
def test_a_table_of_open_ranges_is_right_or_not_made(ladder, padded):
    table = pick_table(ladder, ("seq", "batch"), padded)
    if table is not None:
        assert [table.pick({"batch": b, "seq": s}) for b, s in SIZES] == picked_one_by_one(ladder, padded)


def test_no_table_is_made_that_would_be_too_large():
    profiles = tuple(Profile(f"p{i}", {s: Range(i, i, i) for s in ("a", "b")}) for i in range(0, 600, 2))
    assert pick_table(Ladder(profiles), ("a", "b"), frozenset()) is None


def ladder_of(*tops, cost_s=()):
    return Ladder(tuple(Profile(f"p{i}", {"seq": Range(1, top, top)}) for i, top in enumerate(tops)), cost_s)


def test_an_evaluation_adds_up_padding_cost_and_refusals():
    traffic = traffic_from_rows(["seq"], [[2], [4], [9], [20]], [4.0, 2.0, 2.0, 2.0])
    cost = CostModel(("seq",), ((1, 10),), (1.0, 10.0), "measured")
    found = evaluate_ladder(ladder_of(4, 10), traffic, cost, {"seq"}, overhead_s=0.5)
    assert found.expected_s == pytest.approx((6 * 4.5 + 2 * 10.5) / 8)
    assert found.exact_s == pytest.approx((4 * 2.5 + 2 * 4.5 + 2 * 9.5) / 8)
    assert found.waste == pytest.approx(1 - (4 * 2 + 2 * 4 + 2 * 9) / (6 * 4 + 2 * 10))
    assert found.refused == pytest.approx(0.2)
    assert [(b.profile, b.share, b.mean_s) for b in found.buckets] == [("p0", 0.75, 4.5), ("p1", 0.25, 10.5)]
    assert found.buckets[0].waste == pytest.approx(1 - (4 * 2 + 2 * 4) / (6 * 4))


def test_exact_runs_pad_only_as_far_as_a_range_demands():
    traffic = traffic_from_rows(["seq"], [[2], [9]])
    ladder = Ladder((Profile("p0", {"seq": Range(4, 16, 16)}),))
    assert evaluate_ladder(ladder, traffic, element_cost(["seq"]), {"seq"}, to_bucket=False).expected_s == 6.5


def test_a_ladder_that_serves_nothing_is_a_failed_check():
    with pytest.raises(CheckError, match="no profile of the ladder takes any size"):
        evaluate_ladder(ladder_of(4), traffic_from_rows(["seq"], [[9]]), element_cost(["seq"]), {"seq"})
