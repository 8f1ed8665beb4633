"""Cost models: exact on the grid, monotone, never negative; and the nearest monotone costs to measured ones."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import UsageError
from trtc.profiles.cost import CostModel, HeldOut, element_cost
from trtc.profiles.cost_fit import analytic_cost, held_out, measured_cost, monotone_grid

AXES = st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True).map(sorted).map(tuple)
POINTS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=8)


@st.composite
def models(draw):
    grid = (draw(AXES), draw(AXES))
    shape = [len(axis) for axis in grid]
    steps = draw(st.lists(st.floats(0, 10), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    table = np.array(steps).reshape(shape).cumsum(axis=0).cumsum(axis=1)
    return CostModel(
        ("a", "b"), grid, tuple(np.maximum.accumulate(np.maximum.accumulate(table, 0), 1).ravel()), "measured"
    )


@given(model=models())
def test_the_cost_at_a_grid_point_is_the_one_given(model):
    assert model.seconds(list(product(*model.grid))) == pytest.approx(np.array(model.grid_s), rel=1e-12, abs=1e-300)


@given(model=models(), points=POINTS, grow=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_the_cost_never_falls_when_a_size_grows_and_is_never_negative(model, points, grow):
    small, large = model.seconds(points), model.seconds([(a + grow[0], b + grow[1]) for a, b in points])
    assert (small >= 0).all()
    assert (large >= small * (1 - 1e-12) - 1e-300).all()


def test_between_points_it_is_linear_below_it_stays_and_above_it_grows_in_proportion():
    model = CostModel(("seq",), ((10, 20),), (1.0, 3.0), "measured")
    assert model.seconds([[1], [10], [15], [20], [40]]).tolist() == [1.0, 1.0, 2.0, 3.0, 6.0]


def test_counting_elements_multiplies_the_sizes():
    assert element_cost(("a", "b")).seconds([[3, 7], [1, 1], [2**20, 2**20]]).tolist() == [21.0, 1.0, 2.0**40]


@given(table=st.lists(st.lists(st.floats(0.01, 100), min_size=3, max_size=3), min_size=1, max_size=4))
def test_measured_costs_become_monotone_with_the_smallest_largest_change(table):
    costs = np.array(table)
    fitted = monotone_grid(costs)
    assert all((np.diff(fitted, axis=axis) >= 0).all() for axis in (0, 1))
    cells = list(product(range(costs.shape[0]), range(costs.shape[1])))
    wrong = [costs[a] / costs[b] for a in cells for b in cells if a[0] <= b[0] and a[1] <= b[1]]
    largest = np.exp(np.abs(np.log(fitted / costs)).max())
    assert largest == pytest.approx(np.sqrt(max(wrong)), rel=1e-9)  # two out of order cannot both move less


def test_costs_in_order_stay_as_they_are():
    assert monotone_grid([[1.0, 2.0], [1.0, 7.1]]).tolist() == [[1.0, 2.0], [1.0, 7.1]]


def test_a_measured_model_is_mended_and_an_analytic_one_is_scaled():
    assert measured_cost(["seq"], [[1, 2]], [4.0, 1.0]).grid_s == pytest.approx((2.0, 2.0))
    model = analytic_cost(["seq"], [[1, 2]], [100, 300], operations_per_s=100, overhead_s=0.5)
    assert (model.source, model.grid_s) == ("analytic", (1.5, 3.5))


def test_the_error_at_held_out_sizes_is_relative_to_what_was_measured():
    model = CostModel(("seq",), ((10, 20),), (1.0, 3.0), "measured")
    assert held_out(model, [[15], [20], [10]], [2.5, 3.0, 0.8]) == HeldOut(3, pytest.approx(0.2), pytest.approx(0.25))
    assert held_out(model, np.zeros((0, 1)), []) == HeldOut(0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("grid", "seconds", "message"),
    [
        pytest.param(((2, 1),), (1.0, 2.0), "ascending sizes", id="grid-order"),
        pytest.param(((0, 1),), (1.0, 2.0), "ascending sizes of 1", id="size-0"),
        pytest.param(((1, 2),), (1.0,), "1 costs for a grid of 2 points", id="count"),
        pytest.param(((1, 2),), (1.0, float("nan")), "NaN", id="nan"),
        pytest.param(((1, 2),), (-1.0, 2.0), "negative", id="negative"),
        pytest.param(((1, 2),), (2.0, 1.0), "costs fall where seq grows", id="falling"),
        pytest.param((), (), "one grid for each symbol", id="no-grid"),
    ],
)
def test_an_impossible_model_is_refused(grid, seconds, message):
    with pytest.raises(UsageError, match=message):
        CostModel(("seq",), grid, seconds, "measured")


@pytest.mark.parametrize("cost", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_measurement_is_refused(cost):
    with pytest.raises(UsageError, match="measure that size again"):
        monotone_grid([1.0, cost])


def test_a_table_of_another_shape_than_its_grid_is_refused():
    with pytest.raises(UsageError, match=r"shape \[3\] for a grid of 2 points"):
        measured_cost(["seq"], [[1, 2]], [1.0, 2.0, 3.0])
