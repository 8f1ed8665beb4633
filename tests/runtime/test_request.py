"""Checking a request: every problem is named, all in one error."""

from __future__ import annotations

import numpy as np
import pytest

from trtc.profiles import PadRule, TrtcError
from trtc.runtime import RequestError

F = np.float32


@pytest.fixture
def session(open_bundle, graphs):
    nodes = [graphs.node("Add", ["a", "b"], ["t"]), graphs.node("Mul", ["t", "c"], ["y"])]
    inputs = [graphs.value(name, ("batch", 4)) for name in "ab"] + [graphs.value("c", ("batch", 1))]
    model = graphs.model(nodes, inputs, [graphs.value("y", ("batch", 4))])
    return open_bundle(model, profiles=({"batch": (2, 4)}, {"batch": (6, 8)}))


def refusal(session, feeds):
    with pytest.raises(RequestError) as caught:
        session.run(feeds)
    for outputs in (None, ["y"]):
        with pytest.raises(RequestError) as again, session.borrow(feeds, outputs):
            pass
        assert str(again.value) == str(caught.value)
    assert session.stats.slots == len(session._core.pool._free), "a refused request kept a slot"
    return str(caught.value)


def good(batch=2):
    return {"a": np.ones((batch, 4), F), "b": np.ones((batch, 4), F), "c": np.full((batch, 1), 3, F)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"a": None}, ["input 'a' is missing: a: float [batch, 4]"], id="missing"),
        pytest.param({"zz": np.ones(1, F)}, ["there is no input 'zz' (inputs: 'a', 'b', 'c')"], id="extra"),
        pytest.param(
            {"a": None, "A": np.ones((2, 4), F)},
            ["input 'a' is missing", "no input 'A', did you mean 'a'?"],
            id="misspelled",
        ),
        pytest.param({"a": np.ones((2, 4))}, ["'a': dtype float64, but the model takes float32"], id="dtype"),
        pytest.param({"a": np.ones(4, F)}, ["'a': shape [4], but the model takes [batch, 4]"], id="rank"),
        pytest.param({"a": np.ones((2, 5), F)}, ["'a': axis 1 is 5, but the model takes exactly 4"], id="static"),
        pytest.param(
            {"b": np.ones((3, 4), F)}, ["input 'b': axis 0 (batch) is 3, but input 'a' has batch=2"], id="equality"
        ),
        pytest.param({1: np.ones(1, F)}, ["there is no input 1"], id="a-name-that-is-no-text"),
    ],
)
def test_one_problem_is_named(session, change, said):
    feeds = {name: array for name, array in {**good(), **change}.items() if array is not None}
    message = refusal(session, feeds)
    for part in said:
        assert part in message


def test_a_size_of_one_is_not_broadcast_to_another_size(session):
    message = refusal(session, {**good(3), "b": np.ones((1, 4), F)})
    assert "input 'b': axis 0 (batch) is 1, but input 'a' has batch=3; they must be equal" in message


def test_all_problems_stand_in_one_error(session):
    feeds = {"a": np.ones((9, 4)), "b": np.ones((9, 5), F), "cc": np.ones(1, F), "zz": 1}
    message = refusal(session, feeds)
    for part in [
        "input 'c' is missing",
        "no input 'cc'",
        "no input 'zz'",
        "'a': dtype float64",
        "'b': axis 1 is 5",
        "batch=9, but this bundle serves batch 2..4 or 6..8",
    ]:
        assert part in message
    assert message.count(";") >= 5


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (9, "batch=9, but this bundle serves batch 2..4 or 6..8; shorten the request or rebuild with --dim batch=2..9"),
        (1, "batch=1, but this bundle serves batch 2..4 or 6..8; send a larger request"),
        (5, "batch=5, but this bundle serves batch 2..4 or 6..8"),
        (0, "batch=0, but this bundle serves batch 2..4 or 6..8"),
    ],
)
def test_a_size_outside_every_profile_is_refused_and_the_next_call_is_right(session, batch, said):
    assert said in refusal(session, good(batch))
    assert session.run(good(2))["y"].tolist() == [[6] * 4] * 2


def test_every_symbol_that_is_out_of_range_is_named(open_bundle, mix_model):
    session = open_bundle(mix_model, profiles=({"batch": (1, 2), "seq": (1, 8)},))
    array = np.ones((3, 9, 4), F)
    with pytest.raises(RequestError) as caught:
        session.run({"a": array, "b": array})
    assert "batch=3, but this bundle serves batch 1..2" in str(caught.value)
    assert "seq=9, but this bundle serves seq 1..8" in str(caught.value)


def test_sizes_that_fit_different_profiles_only_are_refused_together(open_bundle, mix_model):
    session = open_bundle(mix_model, profiles=({"batch": (1, 1), "seq": (1, 64)}, {"batch": (2, 8), "seq": (1, 8)}))
    array = np.ones((4, 32, 4), F)
    with pytest.raises(RequestError, match=r"no profile takes batch=4, seq=32 together; this bundle serves p0"):
        session.run({"a": array, "b": array})


@pytest.mark.parametrize("shape", [(2**30, 2**20, 4), (2**40, 1, 4)])
def test_a_huge_shape_without_memory_behind_it_is_an_error_of_ours(open_bundle, mix_model, shape):
    session = open_bundle(mix_model, profiles=({"batch": (0, None), "seq": (0, None)},), slots=1)
    huge = np.broadcast_to(np.float32(1), shape)
    with pytest.raises(TrtcError):
        session.run({"a": huge, "b": huge})
    small = np.ones((1, 2, 4), F)
    assert session.run({"a": small, "b": small})["y"].shape == (1, 2, 4)


def test_a_relation_that_goes_below_zero_is_refused_with_the_sizes(open_bundle, graphs):
    from trtc.profiles import Expr, Step, Term

    nodes = [graphs.node("AveragePool", ["x"], ["y"], kernel_shape=[3])]
    model = graphs.model(nodes, [graphs.value("x", ("n", 1, "w"))], [graphs.value("y", ("n", 1, None))])
    relation = {"y": ("n", 1, Expr((Term(1, (Step("w", 1, -2),)),)))}
    session = open_bundle(model, profiles=({"n": (1, None), "w": (0, None)},), outputs=relation)
    assert session.run({"x": np.ones((1, 1, 5), F)})["y"].shape == (1, 1, 3)
    with pytest.raises(RequestError, match=r"'y' \[n, 1, w-2\] would have shape \[1, 1, -1\] for n=1, w=1"):
        session.run({"x": np.ones((1, 1, 1), F)})


def test_a_request_with_no_inputs_runs_a_model_without_inputs(open_bundle, graphs):
    import onnx

    constant = onnx.numpy_helper.from_array(np.array([1, 2], F), "value")
    model = graphs.model([graphs.node("Constant", [], ["y"], value=constant)], [], [graphs.value("y", (2,))])
    session = open_bundle(model)
    for _ in range(3):
        assert session.run({})["y"].tolist() == [1, 2]
    with pytest.raises(RequestError, match="there is no input 'x'"):
        session.run({"x": np.ones(1, F)})


def test_symbols_may_be_padded_up_to_the_least_size_of_a_gap(open_bundle, double_model):
    profiles = ({"batch": (1, 4)}, {"batch": (8, 16)})
    session = open_bundle(double_model, profiles=profiles, padding=(PadRule("batch", "rows", {}),))
    assert session.explain({"batch": 6}).run_sizes == {"batch": 8}
    x = np.arange(24, dtype=F).reshape(6, 4)
    assert session.run({"x": x})["y"].tolist() == (2 * x).tolist()


def test_arguments_in_the_order_of_another_library_are_explained(session):
    with pytest.raises(RequestError, match="after one dict of all inputs"):
        session.run(None, {"x": np.zeros((1, 4), np.float32)})
    with pytest.raises(RequestError, match="outputs came as ndarray"):
        session.run(np.zeros((1, 4), np.float32), np.zeros((1, 4), np.float32))


def test_a_session_says_what_it_is(session):
    assert "engine cpu" in repr(session)
    session.close()
    assert "closed" in repr(session)
