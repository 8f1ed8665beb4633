"""What is remembered of many comparisons."""

from __future__ import annotations

import numpy as np

from trtc.compiler.probes.trial import Worst
from trtc.compiler.tolerance import Tolerance

ONE = {"y": np.ones(1, np.float32)}


def test_the_largest_failure_is_remembered_with_its_sizes():
    worst = Worst()
    for n, value in enumerate([1.0, 1.5, 3.0, 2.0]):
        worst.compare({"y": np.full(1, value, np.float32)}, ONE, Tolerance(), {"n": n})
    assert not worst.passed
    (finding,) = worst.findings()
    assert (finding.max_abs, finding.sizes) == (2.0, {"n": 2})


def test_a_failure_with_a_number_is_remembered_before_one_without():
    worst = Worst()
    worst.compare({"y": np.ones(2, np.float32)}, ONE, Tolerance(), {"n": 0})
    worst.compare({"y": np.full(1, 1.5, np.float32)}, ONE, Tolerance(), {"n": 1})
    worst.compare({"y": np.full(1, np.nan, np.float32)}, ONE, Tolerance(), {"n": 2})
    assert worst.findings()[0].max_abs == 0.5


def test_a_failure_is_remembered_before_anything_that_passed():
    worst = Worst()
    worst.compare({"y": np.ones(2, np.float32)}, ONE, Tolerance(), {"n": 0})
    worst.compare(ONE, ONE, Tolerance(), {"n": 1})
    assert worst.failures() == "output 'y': shape (2,) where the reference has (1,)"


def test_no_comparison_is_no_pass():
    assert not Worst().passed
