"""Traffic from distributions: shares add up, a fit finds what data was drawn from and says how far off it is."""

import numpy as np
import pytest

from trtc.profiles import UsageError
from trtc.profiles.distributions import Distribution, fit_distribution, histogram, independent

KINDS = ["lognormal", "negative binomial"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_to_drawn_sizes_finds_the_distribution(kind):
    wanted = Distribution(kind, 40.0, 0.4 if kind == "lognormal" else 6.0, 1, 600)
    found = fit_distribution(wanted.traffic("seq"), "seq", kind)
    assert found.distribution.center == pytest.approx(wanted.center, rel=0.02)
    assert found.distribution.spread == pytest.approx(wanted.spread, rel=0.05)
    assert found.distance < 0.01


def test_a_fit_to_sizes_of_two_kinds_shows_that_it_is_none():
    traffic = histogram("seq", {8: 1.0, 9: 1.0, 400: 1.0, 401: 1.0})
    assert all(fit_distribution(traffic, "seq", kind).distance > 0.1 for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_shares_add_up_inside_the_limits(kind):
    traffic = Distribution(kind, 50.0, 2.0, 16, 64).traffic("seq")
    assert traffic.total == pytest.approx(1.0)
    assert (traffic.sizes.min(), traffic.sizes.max(), traffic.requests) == (16, 64, 0)


def test_the_median_of_a_lognormal_is_its_center():
    assert Distribution("lognormal", 64.0, 0.7, 1, 2000).traffic("seq").quantiles("seq", [0.5]) == (64,)


def test_independent_traffic_multiplies_shares():
    both = independent(histogram("batch", {1: 3.0, 2: 1.0}), histogram("seq", {5: 1.0, 9: 1.0}))
    assert both.symbols == ("batch", "seq")
    assert both.weights.tolist() == [0.375, 0.375, 0.125, 0.125]
    with pytest.raises(UsageError, match="cannot be combined"):
        independent(both, histogram("seq", {1: 1.0}))


@pytest.mark.parametrize(
    "figures",
    [
        pytest.param(("lognormal", 0.0, 1.0, 1, 9), id="center"),
        pytest.param(("lognormal", 5.0, 0.0, 1, 9), id="spread"),
        pytest.param(("lognormal", 5.0, float("nan"), 1, 9), id="nan"),
        pytest.param(("negative binomial", 1.0, 1.0, 1, 9), id="mean-1"),
        pytest.param(("lognormal", 5.0, 1.0, 0, 9), id="low-0"),
        pytest.param(("lognormal", 5.0, 1.0, 9, 8), id="order"),
        pytest.param(("lognormal", 5.0, 1.0, 1, 10**9), id="too-many"),
        pytest.param(("normal", 5.0, 1.0, 1, 9), id="kind"),
    ],
)
def test_impossible_distributions_are_refused(figures):
    with pytest.raises(UsageError):
        Distribution(*figures)


def test_limits_that_hold_nothing_of_it_are_refused():
    with pytest.raises(UsageError, match="nothing of it lies between"):
        Distribution("lognormal", 5.0, 0.01, 5000, 6000).shares()


def test_one_size_is_no_distribution():
    with pytest.raises(UsageError, match="one size only, 7"):
        fit_distribution(histogram("seq", {7: 2.0}), "seq", "lognormal")


def test_counts_are_positive():
    with pytest.raises(UsageError, match="weights are positive"):
        histogram("seq", {7: np.nan})
