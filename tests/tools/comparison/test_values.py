"""One output against its reference: what passes, what fails, and which figures are told."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.tools.comparison.rules import Rule, Rules
from trtc.tools.comparison.values import compare_outputs, compare_value

F = np.float32
RULE = Rule(atol=1e-5, rtol=1e-4)


def floats(*values):
    return np.array(values, F)


@pytest.mark.parametrize(
    ("got", "expected", "rule", "passed"),
    [
        pytest.param(floats(1, 100), floats(1, 100.009), RULE, True, id="within-the-tensors-tolerance"),
        pytest.param(floats(1, 100), floats(1, 100.02), RULE, False, id="beyond-the-tensors-tolerance"),
        pytest.param(floats(1.005, 100), floats(1, 100), RULE, True, id="scaled-by-the-largest"),
        pytest.param(floats(1.005, 100), floats(1, 100), Rule(1e-5, 1e-4, "elemwise"), False, id="each-element"),
        pytest.param(floats(1.005, 100), floats(1, 100), Rule(1e-5, 1e-2, "elemwise"), True, id="relative-is-enough"),
        pytest.param(floats(0, 0, 0, 1), floats(0, 0, 0, 0), Rule(0.3, 0, "mean"), True, id="mean"),
        pytest.param(floats(0, 0, 0, 1), floats(0, 0, 0, 0), Rule(0.3, 0, "max"), False, id="max"),
        pytest.param(floats(0, 0, 0, 1), floats(0, 0, 0, 0), Rule(0, 0, "median"), True, id="median"),
        pytest.param(floats(np.nan), floats(np.nan), RULE, True, id="nan-in-equal-places"),
        pytest.param(floats(np.nan), floats(np.nan), Rule(1, 1, finite=True), False, id="nan-although-refused"),
        pytest.param(floats(np.nan, 1), floats(0, 1), Rule(1, 1, "mean"), False, id="nan-hides-behind-no-mean"),
        pytest.param(floats(np.inf), floats(np.inf), RULE, True, id="equal-infinities"),
        pytest.param(floats(np.inf), floats(-np.inf), RULE, False, id="opposite-infinities"),
        pytest.param(floats(np.inf), floats(1e38), Rule(1e38, 1, "elemwise"), False, id="infinity-for-a-number"),
        pytest.param(np.uint8([0]), np.uint8([255]), Rule(2, 0), False, id="unsigned-does-not-wrap"),
        pytest.param(np.uint8([0]), np.uint8([255]), Rule(2, 0, "max"), False, id="unsigned-does-not-wrap-in-max"),
        pytest.param(np.int64([2**62 + 1]), np.int64([2**62]), RULE, False, id="integers-beyond-doubles"),
        pytest.param(np.int64([1000001]), np.int64([1000000]), RULE, False, id="integers-have-no-relative-tolerance"),
        pytest.param(np.int32([3]), np.int32([4]), Rule(1, 0), True, id="integers-within-atol"),
        pytest.param(np.array([True]), np.array([False]), Rule(5, 5, "max"), False, id="bools-are-equal-or-not"),
        pytest.param(np.array(["a", "b"], object), np.array(["a", "b"]), RULE, True, id="strings-of-two-kinds"),
        pytest.param(np.array(["a", "b"], object), np.array(["a", "c"], object), Rule(9, 9), False, id="strings"),
        pytest.param(np.zeros((0, 3), F), np.zeros((0, 3), F), RULE, True, id="empty"),
        pytest.param(np.zeros((0, 3), F), np.zeros((0, 4), F), RULE, False, id="empty-of-other-shapes"),
        pytest.param(np.zeros((2, 1), F), np.zeros(2, F), RULE, False, id="rank"),
        pytest.param(np.zeros(2, F), np.zeros(2, np.float64), RULE, False, id="dtype"),
        pytest.param(np.array(2, F), np.array(2, F), RULE, True, id="rank-0"),
        pytest.param(np.array(2, F), np.array(3, F), RULE, False, id="rank-0-differs"),
        pytest.param(np.complex64([1 + 2j]), np.complex64([1 - 2j]), RULE, False, id="imaginary-parts"),
        pytest.param([floats(1)], [floats(1)], RULE, True, id="sequence"),
        pytest.param([floats(1)], [floats(1), floats(1)], RULE, False, id="sequence-length"),
        pytest.param({"a": 1.0}, {"a": 2.0}, RULE, False, id="map"),
        pytest.param(None, floats(1), RULE, False, id="nothing"),
    ],
)
def test_a_value_passes_for_the_right_reason_only(got, expected, rule, passed):
    result = compare_value("y", got, expected, rule)
    assert result.passed is passed
    assert bool(result.reason) is not passed


def test_types_coarser_than_single_get_what_a_build_gives_them_unless_a_tolerance_is_stated():
    one, other = (np.array([v], ml_dtypes.bfloat16) for v in (1.0, 1.0078125))
    assert compare_value("y", one, other, RULE).passed
    assert not compare_value("y", one, other, Rule(1e-5, 1e-4, coarse=False)).passed


def test_the_figures_say_how_far_and_where():
    result = compare_value("y", floats(1, 2, 4, 0.5).reshape(2, 2), floats(1, 2, 3, 0).reshape(2, 2), RULE)
    assert (result.max_abs, result.where, result.got, result.expected) == (1.0, (1, 0), 4.0, 3.0)
    assert result.max_rel == pytest.approx(1 / 3)  # the reference of 0 has no relative error
    assert result.mean_abs == pytest.approx(1.5 / 4)
    assert (result.differing, result.elements, result.shape) == (2, 4, (2, 2))
    expected = np.dot([1, 2, 4, 0.5], [1, 2, 3, 0]) / np.linalg.norm([1, 2, 4, 0.5]) / np.linalg.norm([1, 2, 3, 0])
    assert result.cosine == pytest.approx(expected)


def test_not_a_number_and_infinities_are_counted_apart():
    nan, inf = np.nan, np.inf
    result = compare_value(
        "y", floats(nan, nan, 1, inf, inf, 1, inf, 2), floats(nan, 1, nan, inf, -inf, inf, 1, 2), RULE
    )
    assert result.nan == {"both": 1, "got": 1, "expected": 1}
    assert result.inf == {"both": 1, "opposite": 1, "got": 1, "expected": 1}
    assert result.where == (1,)
    assert result.max_abs == 0.0
    assert (result.got, result.expected) == ("nan", 1.0)


def test_a_cosine_neither_overflows_nor_vanishes():
    for scale in (1e-30, 1.0, 1e30):
        assert compare_value("y", floats(3, 4) * F(scale), floats(4, 3) * F(scale), RULE).cosine == pytest.approx(0.96)


@pytest.mark.parametrize(
    ("got", "expected", "failing"),
    [
        pytest.param({"y": floats(1)}, {"y": floats(1), "z": floats(1)}, {"z"}, id="one-is-missing"),
        pytest.param({"y": floats(1), "z": floats(1)}, {"y": floats(1)}, {"z"}, id="one-too-many"),
        pytest.param({"y": floats(1)}, {"q": floats(1)}, {"y", "q"}, id="another-name"),
    ],
)
def test_both_sides_must_have_the_same_outputs(got, expected, failing):
    results = compare_outputs(got, expected, Rules(RULE))
    assert {r.output for r in results if not r.passed} == failing


@given(
    st.sampled_from([np.int8, np.uint8, np.int32, np.uint64, np.int64]).flatmap(
        lambda t: st.tuples(st.just(t), *[st.integers(int(np.iinfo(t).min), int(np.iinfo(t).max))] * 2)
    )
)
def test_the_difference_of_integers_is_that_of_whole_numbers(drawn):
    dtype, one, other = drawn
    result = compare_value("y", np.array([one], dtype), np.array([other], dtype), Rule(0, 0))
    assert result.max_abs == float(abs(one - other))
    assert result.passed is (one == other)
