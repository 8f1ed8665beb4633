"""When two results count as equal."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np
import pytest

from trtc.compiler.tolerance import Tolerance, compare, compare_outputs
from trtc.profiles import UsageError

DEFAULT = Tolerance()
NAN, INF = math.nan, math.inf


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("got", "reference"),
    [
        pytest.param(f32(1, 2), f32(1, 2), id="equal"),
        pytest.param(f32(100.009), f32(100), id="inside-the-relative-part"),
        pytest.param(f32(0.000009), f32(0), id="inside-the-absolute-part"),
        pytest.param(f32(1, 100), f32(1.009, 100), id="scaled-by-the-largest-of-the-tensor"),
        pytest.param(f32(NAN, 1), f32(NAN, 1), id="nan-in-equal-places"),
        pytest.param(f32(INF, -INF, 1), f32(INF, -INF, 1.00001), id="infinities-in-equal-places"),
        pytest.param(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), id="empty-of-one-shape"),
        pytest.param(np.array(["a", "é"], object), np.array(["a", "é"]), id="strings-of-two-numpy-kinds"),
        pytest.param(np.array([True, False]), np.array([True, False]), id="bools"),
        pytest.param(np.array(3), np.array(3), id="scalar-integer"),
        pytest.param([f32(1), f32(2)], [f32(1), f32(2.00001)], id="sequences"),
        pytest.param([], [], id="empty-sequences"),
        pytest.param(None, None, id="absent-optionals"),
        pytest.param([{"a": 1.0}], [{"a": 1.0}], id="maps"),
        pytest.param(np.array([1 + 2j], np.complex64), np.array([1 + 2.0001j], np.complex64), id="complex"),
        pytest.param(f32(100.009), f32(100).astype(np.dtype("f4").newbyteorder("=")), id="another-dtype-object"),
        pytest.param(np.float16([1]), np.array([1.001], np.dtype("f2").newbyteorder("=")), id="half-dtype-object"),
    ],
)
def test_results_that_agree_pass(got, reference):
    assert compare(got, reference, DEFAULT).passed


@pytest.mark.parametrize(
    ("got", "reference", "reason"),
    [
        pytest.param(f32(100.02), f32(100), "differs by 0.02", id="beyond-the-tolerance"),
        pytest.param(f32(NAN), f32(1), "nan where the reference has 1", id="nan-on-one-side"),
        pytest.param(f32(1), f32(NAN), "1.0 where the reference has nan", id="nan-on-the-other-side"),
        pytest.param(f32(INF), f32(-INF), "inf where the reference has -inf", id="infinities-of-unlike-sign"),
        pytest.param(f32(1, INF), f32(1, 3e38), "inf where", id="overflow"),
        pytest.param(np.zeros((2, 1), np.float32), np.zeros(2, np.float32), r"shape \(2, 1\)", id="shape"),
        pytest.param(np.zeros((0, 3), np.float32), np.zeros((0, 2), np.float32), "shape", id="empty-of-another-shape"),
        pytest.param(f32(1), np.array([1.0]), "dtype float32", id="dtype"),
        pytest.param(np.array([1]), np.array(["1"], object), "dtype", id="number-against-string"),
        pytest.param(np.array(["a"], object), np.array(["b"], object), "1 elements differ", id="strings"),
        pytest.param(np.array([True]), np.array([False]), "1 elements differ", id="bools"),
        pytest.param([f32(1)], [f32(1), f32(2)], "1 items where the reference has 2", id="sequence-length"),
        pytest.param([f32(1), f32(3)], [f32(1), f32(2)], "differs by 1", id="sequence-item"),
        pytest.param(f32(1), [f32(1)], "one side is a sequence", id="array-against-sequence"),
        pytest.param(None, f32(1), "the values differ", id="absent-against-present"),
        pytest.param([{"a": 1.0}], [{"a": 2.0}], "the values differ", id="maps"),
    ],
)
def test_results_that_differ_fail_with_the_reason(got, reference, reason):
    comparison = compare(got, reference, DEFAULT)
    assert not comparison.passed
    assert comparison.severity > 1
    assert re.search(reason, comparison.reason)


def test_unsigned_differences_do_not_wrap_around():
    comparison = compare(np.array([0], np.uint8), np.array([255], np.uint8), Tolerance(atol=2))
    assert (comparison.passed, comparison.max_abs) == (False, 255.0)


def test_large_integers_that_share_a_double_still_differ():
    comparison = compare(np.array([2**53 + 1]), np.array([2**53]), DEFAULT)
    assert (comparison.passed, comparison.max_abs) == (False, 1.0)


def test_the_worst_element_is_named():
    got = np.zeros((2, 3), np.float32)
    got[1, 2] = 5
    comparison = compare(got, np.zeros((2, 3), np.float32), DEFAULT)
    assert (comparison.where, comparison.max_abs) == ((1, 2), 5.0)


def test_the_scale_ignores_infinities():
    assert not compare(f32(1.5, INF), f32(1, INF), DEFAULT).passed


@pytest.mark.parametrize(
    ("dtype", "inside", "beyond"),
    [
        pytest.param(np.float16, 1.003, 1.01, id="float16"),
        pytest.param(ml_dtypes.bfloat16, 1.02, 1.06, id="bfloat16"),
        pytest.param(ml_dtypes.float8_e4m3fn, 1.25, 1.75, id="float8"),
    ],
)
def test_coarse_types_may_differ_by_four_of_their_epsilons(dtype, inside, beyond):
    one = np.ones(1, dtype)
    assert compare(np.array([inside], dtype), one, DEFAULT).passed
    assert not compare(np.array([beyond], dtype), one, DEFAULT).passed


def test_four_bit_integers_are_compared_by_equality():
    assert compare(np.array([1, -2], ml_dtypes.int4), np.array([1, -2], ml_dtypes.int4), DEFAULT).passed
    assert compare(np.array([-8], ml_dtypes.int4), np.array([7], ml_dtypes.int4), DEFAULT).max_abs == 15


@pytest.mark.parametrize(
    ("got", "reference"),
    [
        pytest.param({"y": f32(1), "z": f32(1)}, {"y": f32(1)}, id="one-too-many"),
        pytest.param({"y": f32(1)}, {"y": f32(1), "z": f32(1)}, id="one-missing"),
        pytest.param({"y": f32(1)}, {"q": f32(1)}, id="another-name"),
    ],
)
def test_outputs_must_have_the_same_names(got, reference):
    assert not all(c.passed for c in compare_outputs(got, reference, DEFAULT).values())


def test_an_infinite_difference_is_recorded_as_a_number_that_json_has():
    finding = compare(f32(NAN), f32(1), DEFAULT).finding("y", {"n": 1})
    assert math.isfinite(finding.max_abs)
    assert finding.max_abs > 1e300


@pytest.mark.parametrize("part", [-1.0, NAN, INF])
def test_a_tolerance_is_finite_and_not_negative(part):
    with pytest.raises(UsageError, match="give two finite numbers"):
        Tolerance(atol=part)
