"""Figures of two bundles: which changes are real, which are noise, and what a condition makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from trtc.tools.bench.rounds import Rounds
from trtc.tools.comparison.conditions import read_conditions
from trtc.tools.comparison.figures import Figure, known_figures, time_figures, verdict_on


def rounds(factor, spread, seed=0):
    """40 rounds of 50 calls of about a millisecond; the new side takes ``factor`` times as long."""
    rng = np.random.default_rng(seed)
    drift = 1 + 0.3 * rng.random((40, 1))  # what the machine does meanwhile meets both
    new, old = (1e-3 * drift * (1 + spread * rng.standard_normal((40, 50))) for _ in range(2))
    return Rounds(factor * np.abs(new), np.abs(old))


def verdict(text, figures, broken=""):
    (condition,) = read_conditions([text])
    return verdict_on(condition, {figure.name: figure for figure in figures}, broken)


def test_a_real_change_lies_outside_of_the_noise_and_fails():
    figures = time_figures(rounds(1.2, 0.02))
    by_name = {figure.name: figure for figure in figures}
    assert list(by_name) == ["mean", "p50", "p90", "p95", "p99"]
    for name in ("mean", "p50"):
        assert by_name[name].change == pytest.approx(0.2, abs=0.01)
        assert not by_name[name].noise
        assert by_name[name].low <= 0.2 <= by_name[name].high
    assert verdict("p50>+5%", figures).state == "failed"
    assert verdict("p50>+50%", figures).state == "passed"
    assert verdict("p50>2us", figures).state == "failed"


def test_a_change_within_the_noise_is_told_and_does_not_fail():
    figures = [Figure(name="p99", old=1.0, new=1.08, change=0.08, low=-0.04, high=0.2)]
    found = verdict("p99>+5%", figures)
    assert found.state == "noise"
    assert "within the noise" in found.detail
    assert "95% -4.0%..+20.0%" in found.detail


def test_a_pass_that_the_noise_could_hide_says_so():
    figures = [Figure(name="p99", old=1.0, new=1.01, change=0.01, low=-0.04, high=0.2)]
    found = verdict("p99>+5%", figures)
    assert found.state == "passed"
    assert "measure longer" in found.detail
    assert "measure longer" not in verdict("p99>+50%", figures).detail


def test_two_equal_sides_are_noise():
    assert all(figure.noise for figure in time_figures(rounds(1.0, 0.1)) if figure.name in ("mean", "p50"))


def test_long_runs_are_thinned_on_both_sides_alike():
    wide = Rounds(np.full((10, 30_000), 2e-3), np.full((10, 30_000), 1e-3))
    ends = [(figure.change, figure.low, figure.high) for figure in time_figures(wide)]
    assert {round(end, 9) for three in ends for end in three} == {1.0}


@pytest.mark.parametrize(
    ("text", "state"),
    [("memory>+10%", "failed"), ("memory>+50%", "passed"), ("memory>1K", "passed"), ("memory>=120B", "failed")],
)
def test_exact_figures_have_no_noise(text, state):
    assert verdict(text, [known_figures("memory", 100, 120)]).state == state


def test_a_figure_that_grew_from_nothing_is_beyond_any_share():
    assert verdict("memory>+900%", [known_figures("memory", 0, 1)]).state == "failed"
    assert verdict("memory>+0%", [known_figures("memory", 0, 0)]).state == "passed"


def test_answers_that_cannot_be_compared_fail_every_condition_about_them():
    assert verdict("cosine<0.9", [Figure(name="cosine", new=1.0)], "output 'y' is missing").state == "failed"
    assert verdict("cosine<0.9", []).state == "failed"
    assert verdict("cosine<0.9", [Figure(name="cosine", new=0.95)]).state == "passed"
