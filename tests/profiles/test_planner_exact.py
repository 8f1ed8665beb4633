"""The planner against an answer that shares nothing with it: every ladder is tried."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest

from trtc.profiles import CheckError
from trtc.profiles.cost import CostModel
from trtc.profiles.plan_values import ArenaBudget, Budget
from trtc.profiles.planner import PlanRequest, plan_ladder
from trtc.profiles.traffic import Traffic, traffic_from_rows

LARGEST = 6
TOP = 9


@dataclass(frozen=True)
class Case:
    traffic: Traffic
    cost: CostModel
    request: PlanRequest


def random_case(seed: int, symbols: tuple[str, ...]) -> Case:
    """Make a case with random sizes, costs, forbidden padding, alignment, form and budgets."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, LARGEST + 1, (int(rng.integers(1, 7)), len(symbols)))
    traffic = traffic_from_rows(symbols, rows, rng.integers(1, 9, len(rows)).astype(float))
    table = rng.random([3] * len(symbols))
    for axis in range(len(symbols)):
        table = np.cumsum(table, axis=axis)
    cost = CostModel(symbols, ((1, 4, TOP),) * len(symbols), tuple(table.ravel()), "measured")
    padded = frozenset(s for s in symbols if rng.random() < 0.8)
    budget = Budget(10.0 + 2.0 * int(rng.integers(1, 4)), 10.0, 2.0) if rng.random() < 0.3 else None
    arena = None
    if rng.random() < 0.3:
        limit = float(rng.integers(LARGEST, TOP ** len(symbols)))
        arena = ArenaBudget(limit, lambda sizes: sizes.prod(axis=1).astype(np.float64))
    request = PlanRequest(
        max_profiles=int(rng.integers(1, 4)),
        padded=padded,
        form="ranges" if rng.random() < 0.6 else "static",
        align={s: int(rng.integers(1, 5)) for s in sorted(padded)},
        engine_bytes=budget,
        arena_bytes=arena,
        within=0.0,
    )
    return Case(traffic, cost, request)


def best_by_trying(case: Case) -> float:
    """The least mean cost of any ladder that keeps to the request; infinite where none does."""
    traffic, request = case.traffic, case.request
    buckets = all_buckets(case)
    most = request.max_profiles
    if request.engine_bytes is not None:
        budget = request.engine_bytes
        most = min(most, round((budget.limit - budget.fixed) // budget.each))
    paid = np.full((len(traffic.sizes), len(buckets)), np.inf)
    for i, row in enumerate(traffic.sizes.tolist()):
        runs = {}
        for j, bucket in enumerate(buckets):
            run = [run_size(a, b, s in request.padded) for a, b, s in zip(row, bucket, traffic.symbols, strict=True)]
            if None not in run:
                runs[j] = run
        if runs:
            paid[i, list(runs)] = traffic.weights[i] * case.cost.seconds(list(runs.values()))
    ladders = (np.array(list(combinations(range(len(buckets)), k)), np.int64) for k in range(1, most + 1))
    found = [paid[:, some].min(axis=2).sum(axis=0).min() for some in ladders if len(some)]
    return float(min(found, default=float("inf"))) / traffic.total


def all_buckets(case: Case) -> list[tuple[int | None, ...]]:
    """Every bucket that the request allows; None stands for the whole range of a symbol."""
    traffic, request = case.traffic, case.request
    widest = traffic.sizes.max(axis=0).tolist()
    choices: list[list[int | None]] = []
    for column, symbol in enumerate(traffic.symbols):
        if symbol in request.padded:
            step = request.align[symbol]
            choices.append(list(range(step, TOP + 1, step)))
        elif request.form == "static":
            choices.append(sorted(set(traffic.sizes[:, column].tolist())))
        else:
            choices.append([None])
    limit = request.arena_bytes.limit_bytes if request.arena_bytes else float("inf")
    full = {b: [w if size is None else size for size, w in zip(b, widest, strict=True)] for b in product(*choices)}
    return [bucket for bucket, sizes in full.items() if np.prod(sizes) <= limit]


def run_size(size: int, room: int | None, may_grow: bool) -> int | None:  # noqa: FBT001
    if room is None or size == room:
        return size
    return room if may_grow and size < room else None


@pytest.mark.parametrize(
    ("symbols", "seeds"),
    [
        pytest.param(("seq",), range(600), id="one-symbol"),
        pytest.param(("batch", "seq"), range(1000, 1400), id="two-symbols"),
    ],
)
def test_the_plan_costs_what_the_best_of_all_ladders_costs(symbols, seeds):
    infeasible = 0
    for seed in seeds:
        case = random_case(seed, symbols)
        expected = best_by_trying(case)
        try:
            result = plan_ladder(case.traffic, case.cost, case.request)
        except CheckError:
            infeasible += 1
            assert expected == float("inf"), seed
            continue
        assert result.point.expected_s == pytest.approx(expected, rel=1e-6), seed
        assert result.point.proven, seed
        assert result.point.lower_s <= expected * (1 + 1e-9), seed
    assert 0 < infeasible < len(seeds) / 2
