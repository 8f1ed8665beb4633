"""The planner: keeps to what it was asked, says what it gives, and is honest about what it could not prove."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import CheckError, Range, UsageError, corners
from trtc.profiles.cost import CostModel, element_cost
from trtc.profiles.evaluation import evaluate_ladder
from trtc.profiles.plan_values import ArenaBudget, Budget
from trtc.profiles.planner import PlanRequest, plan_ladder
from trtc.profiles.traffic import traffic_from_rows

SEQ = frozenset(["seq"])
BOTH = frozenset(["batch", "seq"])


def lengths(*sizes, weights=None):
    return traffic_from_rows(["seq"], [[size] for size in sizes], weights)


def buckets(result, symbol="seq"):
    return [p.ranges[symbol].max for p in result.ladder.profiles]


@given(
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=20),
    steps=st.lists(st.floats(0, 5), min_size=3, max_size=3),
)
def test_a_further_profile_never_costs_more_and_no_plan_is_below_its_bound(sizes, steps):
    traffic = lengths(*(size for size, _ in sizes), weights=[float(w) for _, w in sizes])
    cost = CostModel(("seq",), ((1, 8, 32),), tuple(np.cumsum(steps)), "measured")
    result = plan_ladder(traffic, cost, PlanRequest(max_profiles=8, padded=SEQ, within=0.0))
    costs = [point.expected_s for point in result.curve]
    assert all(a >= b - 1e-12 for a, b in pairwise(costs))
    assert all(point.expected_s >= point.lower_s - 1e-12 for point in result.curve)
    assert min(costs) >= result.exact_s - 1e-12


@given(
    rows=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=12), most=st.integers(1, 5)
)
def test_over_two_symbols_the_bound_holds_and_the_ladder_covers_everything(rows, most):
    traffic = traffic_from_rows(("batch", "seq"), rows)
    cost = element_cost(("batch", "seq"))
    result = plan_ladder(traffic, cost, PlanRequest(max_profiles=most, padded=BOTH, within=0.0))
    found = evaluate_ladder(result.ladder, traffic, cost, BOTH)
    assert found.refused == 0.0
    assert found.expected_s == pytest.approx(result.point.expected_s)
    assert result.exact_s * (1 - 1e-9) <= result.point.lower_s <= result.point.expected_s or not result.point.proven
    costs = [point.expected_s for point in result.curve]
    assert all(a >= b * (1 - 1e-9) for a, b in pairwise(costs))


def test_the_same_request_gives_the_same_plan():
    rng = np.random.default_rng(3)
    traffic = traffic_from_rows(("batch", "seq"), rng.integers(1, 30, (60, 2)))
    request = PlanRequest(max_profiles=3, padded=BOTH, align={"seq": 4})
    first, second = (plan_ladder(traffic, element_cost(("batch", "seq")), request) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("rare", ["cover", "catch_all"])
def test_a_thinned_grid_still_covers_and_says_how_good_it_may_be(rare, monkeypatch):
    monkeypatch.setattr(corners, "MOST_PAIRS", 20_000)
    monkeypatch.setattr(corners, "_THINNED_CORNERS", 100)
    rng = np.random.default_rng(5)
    sizes = np.minimum(rng.lognormal(4, 0.8, (700, 2)).astype(int) + 1, 600)
    traffic = traffic_from_rows(("batch", "seq"), sizes)
    limits = {symbol: Range(1, 700, 700) for symbol in BOTH}
    request = PlanRequest(max_profiles=6, padded=BOTH, limits=limits, rare=rare, within=0.0)
    result = plan_ladder(traffic, element_cost(("batch", "seq")), request)
    assert [point.profiles for point in result.curve] == [1, 2, 3, 4, 5, 6]
    assert all(a.expected_s >= b.expected_s for a, b in pairwise(result.curve))
    assert not result.point.proven
    assert 0 < result.point.gap < 0.5
    assert any("not proven optimal" in note for note in result.notes)
    assert evaluate_ladder(result.ladder, traffic, element_cost(("batch", "seq")), BOTH).refused == 0.0
    assert (str(result.ladder.profiles[-1]) == "p5: batch 1..700, seq 1..700") == (rare == "catch_all")


def test_ten_thousand_sizes_are_planned_exactly():
    rng = np.random.default_rng(0)
    traffic = lengths(*range(1, 10_001), weights=rng.random(10_000) + 0.01)
    result = plan_ladder(traffic, element_cost(("seq",)), PlanRequest(max_profiles=16, padded=SEQ, within=0.0))
    assert len(result.ladder.profiles) == 16
    assert result.point.proven
    edges = buckets(result)
    sizes, weights = traffic.marginal("seq")
    for at in range(15):  # no edge can move by one without costing more
        for step in (-1, 1):
            moved = sorted({*edges[:at], edges[at] + step, *edges[at + 1 :]})
            padded = np.array(moved)[np.searchsorted(moved, sizes)]
            assert (padded * weights).sum() / weights.sum() >= result.point.expected_s * (1 - 1e-12)


def test_buckets_are_multiples_and_ranges_start_at_the_limit():
    request = PlanRequest(max_profiles=2, padded=SEQ, align={"seq": 32}, limits={"seq": Range(2, 512, 512)}, within=0.0)
    result = plan_ladder(lengths(5, 33, 100), element_cost(("seq",)), request)
    assert buckets(result) == [64, 128]
    assert [p.ranges["seq"].min for p in result.ladder.profiles] == [2, 2]
    assert [p.name for p in result.ladder.profiles] == ["p0", "p1"]
    assert result.ladder.cost_s == (64.0, 128.0)


def test_a_symbol_that_may_not_be_padded_keeps_its_range_in_every_profile():
    traffic = traffic_from_rows(("batch", "seq"), [[1, 10], [4, 20], [4, 90]])
    result = plan_ladder(traffic, element_cost(("batch", "seq")), PlanRequest(max_profiles=2, padded=SEQ, within=0.0))
    assert [str(p) for p in result.ladder.profiles] == ["p0: batch 1..4, seq 1..20", "p1: batch 1..4, seq 1..90"]


def test_a_static_ladder_has_a_profile_for_every_size_that_may_not_be_padded():
    traffic = traffic_from_rows(("batch", "seq"), [[1, 10], [4, 20], [4, 90]])
    request = PlanRequest(max_profiles=3, padded=SEQ, form="static", within=0.0)
    result = plan_ladder(traffic, element_cost(("batch", "seq")), request)
    assert [str(p) for p in result.ladder.profiles] == [
        "p0: batch 1, seq 10",
        "p1: batch 4, seq 20",
        "p2: batch 4, seq 90",
    ]


def test_a_static_ladder_that_is_too_short_says_by_how_much():
    traffic = traffic_from_rows(("batch", "seq"), [[1, 10], [4, 20], [5, 90]])
    request = PlanRequest(max_profiles=2, padded=SEQ, form="static")
    with pytest.raises(
        CheckError, match=r"each of 3 sizes of batch.* 2 profiles are allowed, 1 too few; allow 3 profiles"
    ):
        plan_ladder(traffic, element_cost(("batch", "seq")), request)


def test_a_catch_all_reaches_the_limit_and_counts_as_a_profile():
    request = PlanRequest(max_profiles=2, padded=SEQ, limits={"seq": Range(1, 512, 512)}, rare="catch_all", within=0.0)
    assert buckets(plan_ladder(lengths(10, 20, 30), element_cost(("seq",)), request)) == [30, 512]


def test_a_catch_all_over_two_symbols_reaches_both_limits():
    limits = {"batch": Range(1, 8, 8), "seq": Range(1, 64, 64)}
    request = PlanRequest(max_profiles=2, padded=BOTH, limits=limits, rare="catch_all", within=0.0)
    result = plan_ladder(traffic_from_rows(("batch", "seq"), [[1, 9], [3, 4]]), element_cost(("batch", "seq")), request)
    assert [str(p) for p in result.ladder.profiles] == ["p0: batch 1..3, seq 1..9", "p1: batch 1..8, seq 1..64"]


def test_the_costliest_requests_are_refused_up_to_the_share():
    request = PlanRequest(max_profiles=1, padded=SEQ, rare="refuse", refuse_share=0.02, within=0.0)
    result = plan_ladder(lengths(10, 400, 500, weights=[98.0, 1.0, 1.0]), element_cost(("seq",)), request)
    assert buckets(result) == [10]
    assert result.refused == pytest.approx(0.02)


def test_the_knee_is_the_shortest_ladder_within_the_share():
    traffic = lengths(10, 100, 101, weights=[1.0, 1.0, 1.0])
    result = plan_ladder(traffic, element_cost(("seq",)), PlanRequest(max_profiles=3, padded=SEQ, within=0.02))
    assert len(result.ladder.profiles) == 2
    assert len(result.curve) == 3
    assert result.reason.startswith("2 of at most 3 profiles: within 0.5% of the cheapest; one fewer costs ")
    exact = plan_ladder(traffic, element_cost(("seq",)), PlanRequest(max_profiles=3, padded=SEQ, within=0.0))
    assert len(exact.ladder.profiles) == 3


def test_a_budget_shortens_the_ladder():
    request = PlanRequest(max_profiles=8, padded=SEQ, build_s=Budget(100.0, 10.0, 30.0), within=0.0)
    result = plan_ladder(lengths(1, 10, 100, 1000, 5000), element_cost(("seq",)), request)
    assert len(result.ladder.profiles) == 3
    assert "the budgets allow 3 of 8 profiles" in result.notes


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(
            PlanRequest(padded=SEQ, engine_bytes=Budget(100.0, 80.0, 50.0)),
            r"engines may take 100 bytes, but .* one profile takes 130 bytes, 30 more; the nearest .* is 130 bytes",
            id="engine-bytes",
        ),
        pytest.param(
            PlanRequest(padded=SEQ, arena_bytes=ArenaBudget(100.0, lambda sizes: sizes[:, 0] * 4.0)),
            r"may take 100 bytes, but seq=90 needs 360, 260 more; the nearest .* is 360 bytes, or refuse 66\.67%",
            id="arena",
        ),
        pytest.param(
            PlanRequest(
                padded=SEQ,
                arena_bytes=ArenaBudget(100.0, lambda sizes: sizes[:, 0] * 4.0),
                rare="refuse",
                refuse_share=0.1,
            ),
            r"260 more, and only 10\.00% may be refused",
            id="arena-beyond-refusal",
        ),
    ],
)
def test_a_budget_that_nothing_satisfies_says_by_how_much_and_what_would_do(request_, message):
    with pytest.raises(CheckError, match=message):
        plan_ladder(lengths(10, 30, 90), element_cost(("seq",)), request_)


def test_traffic_that_leaves_a_symbol_out_is_refused():
    with pytest.raises(UsageError, match="says nothing about batch, only about seq; give the size of every symbol"):
        plan_ladder(lengths(5), element_cost(("batch", "seq")), PlanRequest(padded=SEQ))


def test_a_slot_budget_that_needs_more_profiles_says_what_one_profile_takes():
    traffic = traffic_from_rows(("batch", "seq"), [[1, 9], [9, 1]])
    budget = ArenaBudget(20.0, lambda sizes: sizes.prod(axis=1).astype(np.float64))
    with pytest.raises(CheckError, match=r"at most 1 profiles .* slots of 20 bytes; one .* needs 81, 61 more"):
        plan_ladder(
            traffic, element_cost(("batch", "seq")), PlanRequest(max_profiles=1, padded=BOTH, arena_bytes=budget)
        )


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(PlanRequest(padded=frozenset(["sqe"])), "unknown symbol 'sqe'; did you mean 'seq'", id="unknown"),
        pytest.param(
            PlanRequest(align={"seq": 8}), "seq is to be aligned to 8, but may not be padded", id="align-unpadded"
        ),
        pytest.param(
            PlanRequest(padded=SEQ, limits={"seq": Range(1, 64, 64)}),
            r"33\.33% of the traffic has seq 90, but the model takes 1\.\.64",
            id="outside-the-limits",
        ),
        pytest.param(
            PlanRequest(padded=SEQ, limits={"seq": Range(1, 94, 94)}, align={"seq": 8}),
            r"seq reaches 90, which is 96 in multiples of 8, but the model takes seq up to 94; align to 2",
            id="alignment-beyond-the-limit",
        ),
        pytest.param(
            PlanRequest(padded=SEQ, rare="catch_all"), "a catch-all needs a largest size of seq", id="open-end"
        ),
    ],
)
def test_a_request_that_contradicts_model_or_traffic_is_refused(request_, message):
    with pytest.raises(UsageError, match=message):
        plan_ladder(lengths(10, 30, 90), element_cost(("seq",)), request_)


@pytest.mark.parametrize(
    "given_",
    [
        pytest.param({"max_profiles": 0}, id="no-profile"),
        pytest.param({"align": {"seq": 0}}, id="alignment-0"),
        pytest.param({"rare": "refuse"}, id="refuse-without-share"),
        pytest.param({"refuse_share": 0.1}, id="share-without-refuse"),
        pytest.param({"overhead_s": float("nan")}, id="nan-overhead"),
        pytest.param({"within": -0.1}, id="negative-within"),
    ],
)
def test_a_request_with_impossible_figures_is_refused(given_):
    with pytest.raises(UsageError):
        PlanRequest(**given_)
