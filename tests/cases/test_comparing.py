"""Comparing answers: a comparison that passes, or fails, for the wrong reason."""

from __future__ import annotations

import json

import numpy as np
import pytest
from polygraphy.comparator import IterationResult, RunResults

from trtc.tools.comparison.rules import Rule, Rules
from trtc.tools.comparison.values import compare_outputs

RULES = Rules(Rule(atol=1e-5, rtol=1e-4))
F = np.float32
ONE = F([1, 2])
DOUBLE = "g (float[N,2] x) => (float[N,2] y) { y = Add (x, x) }"


def passed(got, expected, rules=RULES):
    return all(result.passed for result in compare_outputs(got, expected, rules))


@pytest.mark.case("An output is missing, or has another name")
def test_both_sides_have_the_same_outputs():
    """{y, z} never equals {y}, and {y} never equals {q} of the same values."""
    assert passed({"y": ONE, "z": ONE}, {"y": ONE, "z": ONE})
    assert not passed({"y": ONE}, {"y": ONE, "z": ONE})
    assert not passed({"y": ONE, "z": ONE}, {"y": ONE})
    assert not passed({"y": ONE}, {"q": ONE})


@pytest.mark.case("NaN and infinities drown the statistics")
def test_values_that_are_not_finite_are_counted_and_have_a_policy():
    """NaN equals NaN, an infinity itself, each counted, until --validate asks for finite values; -Inf is never Inf."""
    nan, inf = F([np.nan, 1]), F([np.inf, 1])
    strict = Rules(Rule(1e-5, 1e-4, finite=True))
    for value in (nan, inf):
        assert passed({"y": value}, {"y": value})
        assert not passed({"y": value}, {"y": value}, strict)
    assert not passed({"y": inf}, {"y": -inf})
    (result,) = compare_outputs({"y": F([np.nan, 1.5])}, {"y": F([np.nan, 1])}, RULES)
    assert (result.max_abs, result.nan["both"], result.where) == (0.5, 1, (1,))


@pytest.mark.case("Values of one kind, in another shape or type")
def test_shapes_and_types_are_part_of_an_answer():
    """(2, 1) is not (2,), and float32 is not float64, whatever they hold."""
    assert not passed({"y": F([[1], [2]])}, {"y": ONE})
    assert not passed({"y": ONE}, {"y": ONE.astype(np.float64)})


@pytest.mark.case("Strings, bools, empty arrays, unsigned integers")
def test_every_kind_of_value_is_compared_by_its_own_rule():
    """Strings and bools are equal or not, (0, 3) equals (0, 3), and 0 is 255 away from 255 in uint8 as well."""
    words = np.array(["a", "b"], object)
    assert passed({"y": words}, {"y": words.copy()})
    assert not passed({"y": words}, {"y": words[::-1]})
    assert not passed({"y": np.array([True])}, {"y": np.array([False])}, Rules(Rule(9, 9)))
    assert passed({"y": np.zeros((0, 3), F)}, {"y": np.zeros((0, 3), F)})
    assert not passed({"y": np.uint8([0])}, {"y": np.uint8([255])}, Rules(Rule(2, 0)))


@pytest.mark.case("Nothing was compared")
def test_a_comparison_of_nothing_fails(trtc, build, tmp_path):
    """Saved answers to no request are a failure with exit code 1, zero iterations are wrong use: neither passes."""
    path = build(DOUBLE).path
    RunResults([("runner", [])]).save(str(tmp_path / "none.json"))
    (tmp_path / "in.json").write_text(json.dumps([]))
    said = trtc("compare", path, "--load-inputs", tmp_path / "in.json", "--load-outputs", tmp_path / "none.json")
    assert said.code == 1
    assert "nothing was compared" in said.err
    assert trtc("compare", path, path, "--iterations", "0").code == 2


@pytest.mark.case("A tolerance is met although the answer is another one")
def test_an_altered_answer_fails_and_says_where(trtc, build, tmp_path):
    """One element of saved answers moved by 0.1: exit code 1, with the output, its difference and what is allowed."""
    path = build(DOUBLE).path
    inputs = [{"x": F([[1, 2], [3, 4]])}]
    from polygraphy.json import save_json

    save_json(inputs, str(tmp_path / "in.json"))
    answer = 2 * inputs[0]["x"]
    answer[1, 0] += F(0.1)
    RunResults([("other", [IterationResult({"y": answer})])]).save(str(tmp_path / "out.json"))
    said = trtc("compare", path, "--load-inputs", tmp_path / "in.json", "--load-outputs", tmp_path / "out.json")
    assert said.code == 1
    assert "output 'y': differs by 0.1" in said.err
    assert "[1, 0]" in said.out
