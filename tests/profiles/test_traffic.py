"""Traffic as a value: joined rows, marginals, quantiles, a digest that says whether two are the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import UsageError
from trtc.profiles.traffic import Arrivals, Traffic, traffic_from_rows
from trtc.profiles.traffic_summary import summary_lines

ROWS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=30)


def traffic_of(rows):
    return traffic_from_rows(("batch", "seq"), [row[:2] for row in rows], [float(row[2]) for row in rows])


@given(rows=ROWS)
def test_joining_keeps_all_weight_and_sorts_rows(rows):
    traffic = traffic_of(rows)
    assert traffic.total == sum(row[2] for row in rows)
    assert [tuple(row) for row in traffic.sizes.tolist()] == sorted({row[:2] for row in rows})


@given(rows=ROWS)
def test_a_marginal_adds_up_what_shares_a_size(rows):
    sizes, weights = traffic_of(rows).marginal("seq")
    expected = {}
    for _, seq, weight in rows:
        expected[seq] = expected.get(seq, 0) + weight
    assert dict(zip(sizes.tolist(), weights.tolist(), strict=True)) == expected


@given(rows=ROWS, share=st.floats(0.01, 1))
def test_a_quantile_is_the_smallest_size_that_holds_the_share(rows, share):
    traffic = traffic_of(rows)
    (found,) = traffic.quantiles("seq", [share])
    below = sum(weight for _, seq, weight in rows if seq < found)
    upto = sum(weight for _, seq, weight in rows if seq <= found)
    assert upto >= share * traffic.total * (1 - 1e-9)
    assert below < share * traffic.total * (1 + 1e-9)


@given(rows=ROWS)
def test_the_digest_is_of_shares_whatever_the_order_and_the_unit(rows):
    doubled = [(*row[:2], row[2] * 2) for row in reversed(rows)]
    assert traffic_of(rows).digest == traffic_of(doubled).digest
    assert traffic_of(rows).digest != traffic_of([*rows, (9, 10, 1)]).digest


def test_restricting_keeps_the_arrivals_on_their_rows():
    arrivals = Arrivals(2, 0.0, 1.0, np.array([0.0, 1.0]), np.array([1, 0]))
    traffic = Traffic(("batch", "seq"), np.array([[1, 9], [2, 5]]), np.ones(2), 2, arrivals)
    seq = traffic.restricted(["seq"])
    assert seq.sizes[seq.arrivals.rows, 0].tolist() == [5, 9]


@pytest.mark.parametrize(
    ("symbols", "sizes", "weights", "message"),
    [
        pytest.param((), [[1]], [1.0], "one or more symbols", id="no-symbol"),
        pytest.param(("a", "a"), [[1, 1]], [1.0], "different names", id="symbol-twice"),
        pytest.param(("a",), [[1, 2]], [1.0], r"give int64 \[n, 1\]", id="columns"),
        pytest.param(("a",), np.zeros((0, 1), np.int64), [], "no request at all", id="empty"),
        pytest.param(("a",), [[0]], [1.0], "holds the size 0", id="zero"),
        pytest.param(("a",), [[1]], [float("nan")], "negative, zero, NaN or infinite", id="nan"),
        pytest.param(("a",), [[1]], [-1.0], "negative, zero, NaN or infinite", id="negative"),
        pytest.param(("a",), [[2], [1]], [1.0, 1.0], "repeat or are out of order", id="order"),
        pytest.param(("a",), [[1], [1]], [1.0, 1.0], "repeat or are out of order", id="repeat"),
    ],
)
def test_impossible_traffic_is_refused(symbols, sizes, weights, message):
    with pytest.raises(UsageError, match=message):
        Traffic(symbols, np.array(sizes, np.int64), np.array(weights, np.float64))


@pytest.mark.parametrize(
    ("times", "rows", "count"),
    [
        pytest.param([1.0, 0.0], [0, 0], 2, id="backwards"),
        pytest.param([0.0], [0, 0], 2, id="lengths"),
        pytest.param([0.0, float("nan")], [0, 0], 2, id="nan"),
        pytest.param([0.0, 1.0], [0, 0], 1, id="more-than-counted"),
    ],
)
def test_impossible_arrivals_are_refused(times, rows, count):
    with pytest.raises(UsageError, match="arrival times"):
        Arrivals(count, 0.0, 1.0, np.array(times), np.array(rows))


def test_the_summary_says_how_much_how_spread_and_how_fast():
    arrivals = Arrivals(4, 0.0, 2.0, np.array([0.0, 0.2, 0.4, 2.0]), np.array([0, 0, 1, 1]))
    traffic = Traffic(("seq",), np.array([[1], [8]]), np.array([3.0, 1.0]), 4, arrivals)
    first, seq, pace = summary_lines(traffic)
    assert first == "4 requests, 2 different sizes of seq"
    assert seq == "seq: 1..8, mean 2.8, half up to 1, 90 % up to 8, 99 % up to 8  |█      ▃|"
    assert pace == "4 of them over 2.0 s: 2.0 a second, about 3 in the busiest second"
