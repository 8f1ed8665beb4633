"""Formulas of output sizes: what is fitted holds, and what does not hold is not fitted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.compiler.fitting import fit_axis, fit_stair
from trtc.profiles import dim_text, dim_value

SIZES = [*range(1, 41), 61, 100, 257]


def scan_of(function, sizes=SIZES):
    return [(n, function(n)) for n in sizes]


@given(
    coef=st.integers(1, 6),
    mul=st.integers(1, 3),
    add=st.integers(-5, 12),
    div=st.integers(1, 8),
    const=st.integers(-3, 7),
)
def test_every_stair_is_found_and_holds_at_sizes_that_were_not_run(coef, mul, add, div, const):
    def stair(n):
        return coef * ((mul * n + add) // div) + const

    found = fit_stair("s", scan_of(stair))
    assert found is not None
    assert [found.value(n) for n in range(max(found.valid_from, 1), 600)] == [
        stair(n) for n in range(max(found.valid_from, 1), 600)
    ]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param(lambda n: n, "s", id="same"),
        pytest.param(lambda n: 6 * n, "6*s", id="product"),
        pytest.param(lambda n: n - 2, "s-2", id="window"),
        pytest.param(lambda n: (n + 1) // 2, "(s+1)//2", id="stride"),
        pytest.param(lambda n: 3 * n // 2, "(3*s)//2", id="resize"),
        pytest.param(lambda n: 2 * ((n + 1) // 2), "2*((s+1)//2)", id="down-and-up"),
    ],
)
def test_the_simplest_formula_is_written(function, text):
    fit = fit_axis({"s": scan_of(function)}, [])
    assert dim_text(fit.dim) == text


def test_no_size_is_left_out_for_a_slightly_simpler_formula():
    found = fit_stair("s", scan_of(lambda n: (5 * n + 1) // 7, range(1, 17)))
    assert (found.step.mul, found.step.div, found.valid_from) == (5, 7, 1)


@pytest.mark.parametrize("sizes", [SIZES, [*range(1, 17), 34, 62, 101, 258]], ids=["many", "few"])
def test_small_sizes_that_behave_otherwise_are_left_out_and_told(sizes):
    fit = fit_axis({"w": scan_of(lambda n: max(1, (n + 3) // 8), sizes)}, [])
    assert dim_text(fit.dim) == "(w+3)//8"
    assert fit.valid_from == {"w": 5}


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda n: n * n, id="square"),
        pytest.param(lambda n: min(n, 50), id="capped"),
        pytest.param(lambda n: n % 7, id="sawtooth"),
        pytest.param(lambda n: hash((n, "noise")) % 5 + n, id="noise"),
    ],
)
def test_what_is_no_stair_is_not_fitted(function):
    assert fit_axis({"s": scan_of(function)}, []).dim is None


def test_a_stair_longer_than_the_sizes_run_asks_for_more():
    fit = fit_axis({"s": scan_of(lambda n: (n + 5) // 20, range(1, 17))}, [])
    assert fit.dim is None or fit.more_sizes["s"] > 16


def joint_of(function, symbols):
    base = dict.fromkeys(symbols, 2)
    scans = {s: [(n, function(**{**base, s: n})) for n in SIZES] for s in symbols}
    spread = [{s: 1 + (7 * i + 11 * k * i * i) % 23 for k, s in enumerate(symbols)} for i in range(1, 40)]
    single = [{**base, s: n} for s in symbols for n in SIZES]
    return scans, [(sizes, function(**sizes)) for sizes in (*single, *spread)]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param(lambda p, s: p + s, "p+s", id="sum"),
        pytest.param(lambda p, s: p * s, "p*s", id="product"),
        pytest.param(lambda p, s: 3 * p * s + 1, "3*p*s+1", id="product-and-constant"),
        pytest.param(lambda p, s: p * (s // 8), "p*(s//8)", id="product-of-a-stair"),
        pytest.param(lambda p, s: (p + 3) // 4 + s - 1, "(p+3)//4+s-1", id="sum-of-a-stair"),
        pytest.param(lambda p, s, b: b * p + b * s, "p*b+s*b", id="sum-of-products"),
    ],
)
def test_several_symbols_give_sums_of_products(function, text):
    symbols = function.__code__.co_varnames
    fit = fit_axis(*joint_of(function, symbols))
    sizes = dict(zip(symbols, (13, 40, 9), strict=False))
    assert dim_value(fit.dim, sizes) == function(**sizes)
    assert dim_text(fit.dim) == text


@pytest.mark.parametrize("function", [lambda p, s: max(p, s + 1), lambda p, s: (p + s) // 2], ids=["max", "mean"])
def test_joint_sizes_refute_what_single_symbols_suggest(function):
    assert fit_axis(*joint_of(function, ("p", "s"))).dim is None


def test_one_size_with_two_results_depends_on_the_data():
    assert fit_axis({"s": [(1, 1), (2, 2), (2, 3), (3, 3)]}, []).dim is None
    assert fit_axis({"s": [(1, 4), (2, 4)]}, [({"s": 1}, 4), ({"s": 1}, 5)]).dim is None
