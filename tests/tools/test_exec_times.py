"""Calls by who answered, beside a recorded run: a ratio only where the spread of the calls allows one."""

from __future__ import annotations

import pytest

from trtc.tools.exec_summary import show_summary, summary_fields
from trtc.tools.exec_times import compared

MODEL = {"model": "ab" * 32, "name": "m.onnx"}
SHAPE = {"inputs": {"x": [2]}}
KEY = '{"x": [2]}'


def sums(*seconds):
    return len(seconds), sum(seconds), sum(s * s for s in seconds)


def calls(*seconds, by_bundle, **more):
    count, taken_s, squares = sums(*seconds)
    return {**MODEL, **SHAPE, "count": count, "seconds": taken_s, "squares": squares, "by_bundle": by_bundle, **more}


OPENED = {**MODEL, "opened_s": 0.1, "bundle": "/b/m.trtc"}
PROCESS = {"process": 1}


def shown(entries, before, capsys, bundles=()):
    fields = summary_fields([PROCESS, *entries], bundles, before)
    show_summary(fields)
    return fields, capsys.readouterr().err


@pytest.mark.parametrize(("now", "before", "differs"), [
    pytest.param([1.0, 1.1, 0.9] * 10, (30, 2.0), True, id="far-apart"),
    pytest.param([1.0, 1.1, 0.9] * 10, (30, 1.01), False, id="within-the-spread"),
    pytest.param([1.0, 3.0], (2, 4.0), False, id="few-calls-that-scatter"),
    pytest.param([1.0] * 9, (9, 1.05), False, id="steady-but-another-moment"),
    pytest.param([1.0] * 9, (9, 1.2), True, id="steady-and-apart"),
    pytest.param([1.0] * 8 + [1.5] * 8, (1, 1.6), False, id="one-call-before-tells-little"),
    pytest.param([1.0], (1, 9.0), None, id="one-call-has-no-spread"),
])  # fmt: skip
def test_two_moments_differ_by_more_than_calls_scatter(now, before, differs):
    found = compared({KEY: sums(*now)}, {KEY: before})
    assert found["differs"] is differs
    assert found["compared_s"] == pytest.approx(sum(now) / len(now))
    assert found["before_s"] == pytest.approx(before[1])


def test_spread_is_told_by_calls_of_equal_shapes_not_by_different_shapes():
    small, large = sums(0.01, 0.0101, 0.0099), sums(1.0, 1.01, 0.99)
    found = compared({"a": small, "b": large}, {"a": (3, 0.02), "b": (3, 2.0)})
    assert found["differs"] is True


def test_calls_are_counted_and_timed_by_who_answered(capsys):
    entries = [OPENED, calls(0.010, 0.012, by_bundle=True), calls(*[0.030] * 3, by_bundle=False)]
    fields, text = shown(entries, {}, capsys)
    [model] = fields["models"]
    assert model["by_bundle"] == {"calls": 2, "seconds": pytest.approx(0.022), "mean_s": pytest.approx(0.011)}
    assert model["by_onnxruntime"] == {"calls": 3, "seconds": pytest.approx(0.09), "mean_s": pytest.approx(0.03)}
    assert (model["calls"], model["sizes"], model["seconds"]) == (5, 1, pytest.approx(0.112))
    assert "5 calls of 1 size: 2 by the bundle (11.0 ms each), 3 by ONNX Runtime (30.0 ms each)\n" in text


@pytest.mark.parametrize(("before_s", "text"), [
    (0.0111, "(11.0 ms each, 11.1 ms in the recorded run: about the same)"),
    (0.022, "(11.0 ms each, 22.0 ms in the recorded run: 0.50 x)"),
])  # fmt: skip
def test_only_calls_that_the_bundle_answered_are_compared(capsys, before_s, text):
    entries = [OPENED, calls(*[0.011] * 4, by_bundle=True), calls(*[5.0] * 40, by_bundle=False)]
    fields, said = shown(entries, {MODEL["model"]: {KEY: (4, before_s)}}, capsys)
    assert fields["models"][0]["compared_calls"] == 4
    assert f"44 calls of 1 size: 4 by the bundle {text}, 40 by ONNX Runtime (5.0 s each)\n" in said
    assert said.count("recorded runs were at another moment; trtc bench NAME.trtc --vs onnxruntime") == 1


def test_means_that_the_spread_alone_sets_apart_are_not_called_the_same(capsys):
    entries = [OPENED, calls(0.001, 0.020, by_bundle=True)]
    _, text = shown(entries, {MODEL["model"]: {KEY: (2, 0.004)}}, capsys)
    assert "(10.5 ms each, 4.0 ms in the recorded run: calls scatter too much to tell them apart)" in text


def test_a_bundle_that_answered_nothing_is_not_compared(capsys):
    fields, text = shown([OPENED, calls(1.0, 1.0, by_bundle=False)], {MODEL["model"]: {KEY: (4, 0.5)}}, capsys)
    assert fields["models"][0]["before_s"] is None
    assert "2 calls of 1 size by ONNX Runtime (1.0 s each)\n" in text
    assert "recorded" not in text


def test_a_model_that_was_opened_and_not_run_has_no_time(capsys):
    _, text = shown([OPENED], {MODEL["model"]: {KEY: (4, 0.5)}}, capsys)
    assert text == "trtc: m.onnx (abababababab): opened, no call\n"
