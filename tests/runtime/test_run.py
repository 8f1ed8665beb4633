"""``Session.run``: right values, owned results, any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import MappingProxyType

import numpy as np
import pytest

from trtc.profiles import PadRule
from trtc.runtime import Arena, EngineError, RequestError, SlotTimeoutError, UsageError

OPEN = ({"batch": (0, None), "seq": (0, None)},)


def mix_feeds(rng, batch, seq):
    return {name: rng.standard_normal((batch, seq, 4), dtype=np.float32) for name in "ab"}


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("slots", [1, 3])
def test_results_of_many_threads_with_mixed_sizes_equal_plain_onnx_runtime(open_bundle, plain, mix_model, slots):
    session = open_bundle(mix_model, profiles=OPEN, slots=slots)
    barrier = Barrier(6)

    def work(seed):
        rng = np.random.default_rng(seed)
        barrier.wait()
        for _ in range(40):
            feeds = mix_feeds(rng, int(rng.integers(0, 4)), int(rng.integers(1, 9)))
            assert_same(session.run(feeds), plain(mix_model, feeds))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_threads_that_pad_and_threads_that_do_not_never_mix_their_values(open_bundle, double_model):
    session = open_bundle(
        double_model, profiles=({"batch": (1, 4)},), mode="bucket", padding=(PadRule("batch", "rows", {}),), slots=2
    )
    barrier = Barrier(4)

    def work(i):
        x = np.full((i + 1, 4), i + 1, np.float32)
        barrier.wait()
        for _ in range(300):
            y = session.run({"x": x})["y"]
            assert y.shape == (i + 1, 4)
            assert (y == 2 * (i + 1)).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_kept_results_are_not_changed_by_later_calls(open_bundle, double_model, mix_model):
    single = open_bundle(double_model, profiles=({"batch": (1, 4)},), slots=1)
    several = open_bundle(mix_model, profiles=OPEN, slots=1)
    ones = np.ones((1, 2, 4), np.float32)
    kept = [
        (single.run({"x": np.full((1, 4), i, np.float32)}), several.run({"a": ones * i, "b": ones})) for i in range(5)
    ]
    for i, (one, more) in enumerate(kept):
        assert one["y"].tolist() == [[2 * i] * 4]
        assert more["y"].tolist() == [[[i + 1] * 4] * 2]
        assert more["z"].tolist() == [[[4 * i] * 2] * 2]
        for array in (*one.values(), *more.values()):
            assert array.flags.owndata
            assert array.flags.writeable


def test_results_of_two_sessions_in_one_arena_are_independent(open_bundle, double_model):
    arena = Arena()
    one, two = (open_bundle(double_model, profiles=({"batch": (1, 4)},), slots=1, arena=arena) for _ in range(2))
    first = one.run({"x": np.full((2, 4), 1, np.float32)})["y"]
    two.run({"x": np.full((2, 4), 7, np.float32)})
    again = one.run({"x": np.full((2, 4), 3, np.float32)})["y"]
    assert first.max() == first.min() == 2
    assert again.max() == again.min() == 6


def test_the_callers_input_is_neither_changed_nor_kept(open_bundle, identity_model):
    session = open_bundle(identity_model(), profiles=({"n": (1, 4)},), slots=1)
    x = np.array([[1, 2]], np.float32)
    y = session.run({"x": x})["y"]
    assert x.tolist() == [[1, 2]]
    x[...] = 9
    assert y.tolist() == [[1, 2]]


def test_results_stand_in_the_order_of_the_model_or_of_the_selection(open_bundle, mix_model, rng):
    session = open_bundle(mix_model, profiles=OPEN)
    feeds = mix_feeds(rng, 1, 2)
    for outputs, names in [(None, ["y", "z"]), ([], ["y", "z"]), (["z"], ["z"]), (["z", "y"], ["z", "y"])]:
        assert list(session.run(feeds, outputs)) == names
        with session.borrow(feeds, outputs) as views:
            assert list(views) == names
    assert_same(session.run(dict(reversed(feeds.items()))), session.run(feeds))


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        pytest.param(["nope"], r"unknown output 'nope'.*'y', 'z'", id="unknown"),
        pytest.param(["Y"], r"did you mean 'y'\?", id="nearest"),
        pytest.param(["y", "y"], "repeat a name", id="repeated"),
        pytest.param([1], "unknown output '1'", id="no-name"),
        pytest.param(5, "outputs came as int; give a list", id="no-list"),
    ],
)
def test_a_wrong_selection_of_outputs_is_refused(open_bundle, mix_model, rng, outputs, said):
    session = open_bundle(mix_model, profiles=OPEN)
    with pytest.raises(RequestError, match=said):
        session.run(mix_feeds(rng, 1, 2), outputs)
    with pytest.raises(RequestError, match=said):
        session.borrow(mix_feeds(rng, 1, 2), outputs)


def test_feeds_may_be_any_mapping(open_bundle, double_model):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},))
    x = np.ones((1, 4), np.float32)
    for _ in range(2):
        assert session.run(MappingProxyType({"x": x}))["y"].sum() == 8
    with pytest.raises(RequestError, match="inputs came as list; give a dict"):
        session.run([x])
    with pytest.raises(RequestError, match="inputs came as ndarray"):
        session.run(x)


def test_a_call_waits_until_a_slot_is_free(open_bundle, double_model):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},), slots=1)
    x = np.ones((1, 4), np.float32)
    with ThreadPoolExecutor(1) as pool:
        with session.borrow({"x": x}):
            waiting = pool.submit(session.run, {"x": 2 * x})
            while not session._core.pool.waiting and not waiting.done():
                pass
            assert not waiting.done()
        assert waiting.result()["y"].tolist() == [[4, 4, 4, 4]]


@pytest.mark.parametrize("timeout_s", [0, 1e-6])
def test_a_call_that_waits_too_long_for_a_slot_times_out_and_leaves_no_trace(open_bundle, double_model, timeout_s):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},), slots=2)
    x = np.ones((1, 4), np.float32)
    with session.borrow({"x": x}), session.borrow({"x": x}):
        with pytest.raises(SlotTimeoutError, match=r"all 2 slots stayed busy.*more slots") as caught:
            session.run({"x": x}, timeout_s=timeout_s)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(SlotTimeoutError), session.borrow({"x": x}, timeout_s=timeout_s):
            pass
    assert session.run({"x": x}, timeout_s=timeout_s)["y"].sum() == 8


@pytest.mark.parametrize("timeout_s", [-1, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(open_bundle, double_model, timeout_s):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},), slots=1)
    x = np.ones((1, 4), np.float32)
    with session.borrow({"x": x}), pytest.raises(UsageError, match="timeout_s"):
        session.run({"x": x}, timeout_s=timeout_s)


def test_a_failed_call_gives_its_slot_back_and_the_next_one_is_right(open_bundle, graphs):
    nodes = [graphs.node("Reshape", ["x", "shape"], ["y"])]
    model = graphs.model(
        nodes, [graphs.value("x", ("n",)), graphs.value("shape", (2,), 7)], [graphs.value("y", (2, 2))]
    )
    session = open_bundle(model, profiles=({"n": (1, 8)},), slots=1)
    x = np.arange(4, dtype=np.float32)
    for _ in range(3):
        with pytest.raises(EngineError, match="ONNX Runtime says"):
            session.run({"x": x, "shape": np.array([3, 3])})
        assert session.run({"x": x, "shape": np.array([2, 2])})["y"].tolist() == [[0, 1], [2, 3]]


def test_run_reads_values_as_they_are_when_it_is_called(open_bundle, identity_model):
    session = open_bundle(identity_model(), profiles=({"n": (1, 4)},), slots=1)
    x = np.zeros((2, 2), np.float32)
    for i in range(4):
        x[...] = i
        assert session.run({"x": x})["y"].tolist() == [[i, i], [i, i]]


def test_the_library_prints_nothing(open_bundle, mix_model, rng, capfd):
    session = open_bundle(mix_model, profiles=OPEN)
    session.run(mix_feeds(rng, 2, 3))
    with pytest.raises(RequestError):
        session.run({})
    session.close()
    assert capfd.readouterr() == ("", "")
