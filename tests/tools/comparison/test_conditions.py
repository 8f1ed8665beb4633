"""The grammar of ``--fail-if``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import UsageError
from trtc.tools.comparison.conditions import FIGURES, Condition, read_conditions


def test_conditions_stand_between_commas():
    found = read_conditions(["p99>+5%, cosine<0.999", "memory>+10%,size>=2G,mean>1.5ms"])
    assert [(c.figure, c.operator, c.limit, c.relative) for c in found] == [
        ("p99", ">", 0.05, True),
        ("cosine", "<", 0.999, False),
        ("memory", ">", 0.1, True),
        ("size", ">=", 2 * 2**30, False),
        ("mean", ">", 0.0015, False),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "an empty condition", id="nothing"),
        pytest.param("p99>5%,", "an empty condition", id="comma-at-the-end"),
        pytest.param("p98>5%", "unknown figure 'p98'; did you mean 'p99'", id="unknown-figure"),
        pytest.param("p99=5%", "put >, >=, < or <=", id="no-comparison"),
        pytest.param("p99", "put >, >=, < or <=", id="figure-alone"),
        pytest.param("p99>fast", "'fast' is no number; write p99>", id="no-number"),
        pytest.param("p99>", "is no number", id="number-missing"),
        pytest.param("p99>nan", "is no number", id="nan"),
        pytest.param("p99>5", "needs % \\(a change\\) or a unit \\(ns, us, ms, s\\)", id="no-unit"),
        pytest.param("memory>5ms", "or a unit \\(B, K, M, G\\)", id="another-unit"),
        pytest.param("cosine<99%", "compares the two bundles already; write cosine<0.999", id="percent-of-agreement"),
        pytest.param("max_abs>1ms", "max_abs has no unit", id="unit-of-agreement"),
        pytest.param("p99>+5ms", "a sign is for a change", id="sign-without-percent"),
        pytest.param("p99>5%,p99>6%", "says already", id="twice"),
    ],
)
def test_a_mistake_is_told_with_what_is_right(text, says):
    with pytest.raises(UsageError, match=says):
        read_conditions([text])


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        found = read_conditions([text])
    except UsageError:
        return
    assert all(c.figure in FIGURES for c in found)


@pytest.mark.parametrize(
    ("operator", "held"),
    [
        (">", [False, False, True]),
        (">=", [False, True, True]),
        ("<", [True, False, False]),
        ("<=", [True, True, False]),
    ],
)
def test_a_condition_holds_on_its_side_of_the_limit(operator, held):
    condition = Condition("", "p99", operator, 0.05, relative=True)
    assert [condition.holds(value) for value in (0.04, 0.05, 0.06)] == held
