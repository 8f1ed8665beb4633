"""The cost grid on machines whose every cost is known."""

from __future__ import annotations

import numpy as np
import pytest

from trtc.compiler.cost_grid import (
    Axis,
    GridOptions,
    analytic_cost,
    measure_cost,
    unsteadiness,
    unsteady,
    without_outliers,
)
from trtc.profiles.cost import HeldOut
from trtc.profiles.traffic import traffic_from_rows


class Machine:
    """Runs cost what a formula says, times some noise; time passes by what they cost."""

    def __init__(self, cost, noise=0.0, blips=0.0, seed=0):
        self.now_s = 0.0
        self.runs = []
        self._cost, self._noise, self._blips = cost, noise, blips
        self._rng = np.random.default_rng(seed)

    def run(self, point):
        self.runs.append(point)
        seconds = self._cost(*point) * (1 + self._noise * abs(self._rng.standard_normal()))
        if self._rng.random() < self._blips:
            seconds *= 50
        self.now_s += seconds
        return seconds

    def clock(self):
        return self.now_s


def measured(machine, axes, traffic, budget_s=1.0):
    return measure_cost(axes, machine.run, traffic, GridOptions(budget_s, clock=machine.clock))


@pytest.fixture
def lengths():
    return traffic_from_rows(["seq"], np.random.default_rng(0).integers(3, 500, (400, 1)))


def quadratic(n):
    return 1e-4 + 1e-6 * n + 4e-9 * n * n


def test_a_smooth_cost_is_known_within_a_few_percent_everywhere(lengths):
    found = measured(Machine(quadratic, noise=0.02, blips=0.02), [Axis("seq", 3, 512)], lengths)
    sizes = np.arange(3, 513)
    wanted = quadratic(sizes.astype(float))
    off = np.abs(found.model.seconds(sizes[:, None]) - wanted) / wanted
    assert off.max() < 0.1
    assert found.model.source == "measured"
    assert found.model.held_out.count > 5
    assert found.model.held_out.median < 0.05


def test_a_step_is_found_where_the_traffic_is(lengths):
    found = measured(Machine(lambda n: 1e-3 if n <= 128 else 3e-3), [Axis("seq", 3, 512)], lengths)
    at = found.model.grid[0]
    below, above = max(n for n in at if n <= 128), min(n for n in at if n > 128)
    assert above / below < 1.4


def test_the_reported_error_is_that_of_sizes_that_are_not_on_the_grid(lengths):
    machine = Machine(lambda n: 1e-3 * (1 + n % 2))  # nothing between two points can be known
    found = measured(machine, [Axis("seq", 3, 512)], lengths, budget_s=0.3)
    assert found.model.held_out.worst > 0.2


def test_a_straight_line_needs_its_ends_only(lengths):
    found = measured(Machine(lambda n: 1e-5 * n), [Axis("seq", 2, 512)], lengths)
    assert found.model.grid == ((2, 512),)


def test_two_symbols_are_measured_together():
    traffic = traffic_from_rows(["batch", "seq"], np.random.default_rng(1).integers(1, 9, (200, 2)) * [1, 16])
    machine = Machine(lambda b, n: 1e-5 * b * n + 1e-8 * b * n * n)
    found = measured(machine, [Axis("batch", 1, 8), Axis("seq", 16, 128)], traffic, budget_s=5.0)
    assert found.model.symbols == ("batch", "seq")
    assert found.model.seconds([[3, 50]])[0] == pytest.approx(1e-5 * 150 + 1e-8 * 7500, rel=0.1)
    assert all(1 <= b <= 8 and 16 <= n <= 128 for b, n in machine.runs)


def test_time_is_kept_to_beyond_the_corners(lengths):
    machine = Machine(lambda n: 1e-3 * n)
    measured(machine, [Axis("seq", 3, 512)], lengths, budget_s=3.0)
    assert machine.now_s < 3.0 + 4 * 0.515 + 0.6


def test_costs_that_fall_by_noise_are_mended(lengths):
    found = measured(Machine(lambda n: 1e-3, noise=0.3, seed=3), [Axis("seq", 3, 512)], lengths, budget_s=0.2)  # noqa: ARG005
    assert (np.diff(found.model.grid_s) >= 0).all()


def test_sizes_keep_to_the_multiples_that_the_model_takes():
    traffic = traffic_from_rows(["width"], np.array([[32], [640], [96]]))
    machine = Machine(lambda n: 1e-8 * n**2)
    measured(machine, [Axis("width", 32, 640, 32)], traffic)
    assert all(n % 32 == 0 for (n,) in machine.runs)


def test_times_far_above_the_others_are_refused():
    assert without_outliers([1.0, 1.01, 0.99, 1.0, 40.0]) == [1.0, 1.01, 0.99, 1.0]
    assert without_outliers([1.0]) == [1.0]


def test_a_counted_cost_is_marked_and_exact_on_its_grid():
    model = analytic_cost([Axis("seq", 1, 100)], lambda point: float(point[0]) ** 2)
    assert model.source == "analytic"
    assert model.seconds([[100], [1]]).tolist() == [10000.0, 1.0]
    assert len(model.grid[0]) <= 11


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(None, False, id="nothing-compared"),
        pytest.param(HeldOut(5, 0.25, 0.5), False, id="at-the-limits"),
        pytest.param(HeldOut(5, 0.26, 0.3), True, id="middle"),
        pytest.param(HeldOut(5, 0.1, 0.51), True, id="worst"),
    ],
)
def test_costs_that_are_far_off_are_called_unsteady(error, told):
    text = unsteadiness(error, 3.0)
    assert bool(text) == unsteady(error) == told
    if told:
        assert f"{error.median:.0%} in the middle, {error.worst:.0%} at worst" in text
        assert "--measure-seconds 20," in text
        assert "--measure-seconds 60," in unsteadiness(error, 30.0)
