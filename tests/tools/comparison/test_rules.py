"""Tolerances and statistics, for all outputs or for one."""

from __future__ import annotations

import pytest

from trtc.profiles import UsageError
from trtc.tools.comparison.rules import Rule, read_rules

DEFAULT = Rule(1e-5, 1e-4)


def test_an_outputs_own_tolerance_comes_before_that_of_all():
    rules = read_rules(["0.1", "a:b:0.2"], ['"1":1e-3'], ["1:max"], DEFAULT)
    assert rules.of("other") == Rule(0.1, 1e-4)
    assert rules.of("a:b") == Rule(0.2, 1e-4)
    assert rules.of("1") == Rule(0.1, 1e-3, "max", coarse=False)


def test_a_stated_relative_tolerance_is_taken_as_it_is():
    assert DEFAULT.coarse
    assert not read_rules([], ["0.01"], [], DEFAULT).of("y").coarse


@pytest.mark.parametrize(
    ("atol", "rtol", "stat", "says"),
    [
        pytest.param(["-1"], [], [], "0 or more", id="negative"),
        pytest.param([], ["nan"], [], "not a number", id="nan"),
        pytest.param(["y:"], [], [], "OUTPUT:VALUE", id="no-value"),
        pytest.param(["y:1", "y:2"], [], [], "given twice", id="twice"),
        pytest.param([], [], ["y:maximum"], "did you mean 'max'", id="unknown-statistic"),
    ],
)
def test_other_texts_are_wrong_use(atol, rtol, stat, says):
    with pytest.raises(UsageError, match=says):
        read_rules(atol, rtol, stat, DEFAULT)


def test_a_rule_for_an_output_that_is_not_there_is_wrong_use():
    with pytest.raises(UsageError, match="did you mean 'hidden'"):
        read_rules(["hiden:1"], [], [], DEFAULT).refuse_unknown(["hidden", "pooled"])
