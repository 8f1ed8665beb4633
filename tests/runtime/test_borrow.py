"""``Session.borrow``: views without a copy, which never change silently."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

from trtc.profiles import PadRule
from trtc.runtime import (
    EngineError,
    KeptViewWarning,
    LeaseError,
    LostLeaseWarning,
    MemoryBudgetError,
    RequestError,
    SlotTimeoutError,
)
from trtc.runtime.arena import Arena

F = np.float32
PROFILES = ({"batch": (1, 4)},)


def feeds(number, batch=2):
    return {"x": np.full((batch, 4), number, F)}


@pytest.fixture
def session(open_bundle, double_model):
    return open_bundle(double_model, profiles=PROFILES, slots=2)


def test_views_lie_in_the_slot_and_equal_the_results_of_run(session):
    for number in range(4):
        with session.borrow(feeds(number)) as views:
            assert list(views) == ["y"]
            assert not views["y"].flags.owndata
            assert views["y"].tolist() == [[2 * number] * 4] * 2
            addresses = [slot.address for slot in session._core.pool.slots]
            assert any(0 <= views["y"].ctypes.data - a < session.stats.slot_bytes + 4096 for a in addresses)
        assert session.run(feeds(number))["y"].tolist() == [[2 * number] * 4] * 2


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda views: views["y"], id="item"),
        pytest.param(lambda views: views.get("y"), id="get"),
        pytest.param(lambda views: "y" in views, id="in"),
        pytest.param(list, id="iteration"),
        pytest.param(len, id="len"),
        pytest.param(bool, id="bool"),
        pytest.param(lambda views: views.items(), id="items"),
        pytest.param(lambda views: views.keys(), id="keys"),
        pytest.param(lambda views: views.values(), id="values"),
        pytest.param(lambda views: views.copy(), id="copy"),
        pytest.param(lambda views: views.pop("y"), id="pop"),
        pytest.param(lambda views: {**views}, id="unpacking"),
        pytest.param(lambda views: views | {}, id="union"),
        pytest.param(lambda views: views == {}, id="equality"),
        pytest.param(lambda views: views.update(y=1), id="update"),
    ],
)
def test_every_use_of_the_mapping_after_the_block_raises(session, use):
    with session.borrow(feeds(1)) as views:
        pass
    with pytest.raises(LeaseError, match="the borrow block has ended"):
        use(views)
    assert "ended" in repr(views)


def test_an_unknown_name_inside_the_block_is_named_with_the_nearest(session):
    with session.borrow(feeds(1)) as views, pytest.raises(RequestError, match=r"unknown .*'Y'; did you mean 'y'\?"):
        views["Y"]


def consumer(view):
    class OnlyDlpack:
        def __dlpack__(self, **options):
            return view.__dlpack__(**options)

        def __dlpack_device__(self):
            return view.__dlpack_device__()

    return np.from_dlpack(OnlyDlpack())


@pytest.mark.parametrize(
    "keep",
    [
        pytest.param(lambda views: views["y"], id="view"),
        pytest.param(lambda views: views["y"][:1], id="slice"),
        pytest.param(lambda views: views["y"][:1][:, 1:], id="slice-of-a-slice"),
        pytest.param(lambda views: views["y"].T, id="transpose"),
        pytest.param(lambda views: views["y"].view(np.uint32).view(F), id="reinterpreted"),
        pytest.param(lambda views: memoryview(views["y"]), id="memoryview"),
        pytest.param(lambda views: np.asarray(memoryview(views["y"])), id="array-over-memoryview"),
        pytest.param(lambda views: consumer(views["y"]), id="dlpack"),
        pytest.param(lambda views: dict(views)["y"], id="from-a-copied-dict"),
    ],
)
def test_a_kept_view_keeps_its_values_is_counted_and_its_memory_comes_back_when_it_dies(session, keep):
    for number in (3, 3):  # prepare the route, then the fast path
        session.run(feeds(number))
    before = session.stats.arena.in_use_bytes
    with pytest.warns(KeptViewWarning, match="outlived its block"), session.borrow(feeds(5)) as views:
        kept = keep(views)
    del views
    expected = np.array(kept)
    assert (expected == 10).all()
    assert session.stats.kept_views == 1
    for number in range(6):
        assert (session.run(feeds(number))["y"] == 2 * number).all()
        with session.borrow(feeds(number)) as one, session.borrow(feeds(number + 1)) as two:
            assert (one["y"] == 2 * number).all()
            assert (two["y"] == 2 * number + 2).all()
    np.testing.assert_array_equal(np.array(kept), expected)
    assert session.stats.arena.in_use_bytes == 2 * before - before // 2, "one block was put aside, one took its place"
    del kept
    gc.collect()
    assert session.stats.arena.in_use_bytes == before


def test_a_slot_whose_kept_view_died_is_used_again_without_new_memory(open_bundle, double_model):
    session = open_bundle(double_model, profiles=PROFILES, slots=1)
    session.run(feeds(1))
    allocations = session.stats.arena.allocations
    with pytest.warns(KeptViewWarning), session.borrow(feeds(2)) as views:
        kept = views["y"]
    assert kept[0, 0] == 4
    del kept
    assert (session.run(feeds(3))["y"] == 6).all()
    assert session.stats.arena.allocations == allocations


def test_kept_views_are_warned_about_once_a_session_and_counted_each_time(session):
    kept = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for number in range(3):
            with session.borrow(feeds(number)) as views:
                kept.append(views["y"])
    assert [w.category for w in seen] == [KeptViewWarning]
    assert seen[0].filename == __file__
    assert session.stats.kept_views == 3
    assert [view[0, 0] for view in kept] == [0, 2, 4]


def test_a_view_of_one_output_does_not_keep_the_others(open_bundle, mix_model):
    session = open_bundle(mix_model, profiles=({"batch": (1, 2), "seq": (1, 4)},), slots=1)
    ones = np.ones((1, 2, 4), F)
    with pytest.warns(KeptViewWarning), session.borrow({"a": ones, "b": ones}) as views:
        kept = views["z"]
    assert session.stats.kept_views == 1
    assert session.run({"a": 2 * ones, "b": ones})["z"].tolist() == [[[8, 8], [8, 8]]]
    assert kept.tolist() == [[[4, 4], [4, 4]]]


def test_a_view_outlives_its_session(open_bundle, double_model):
    arena = Arena()
    session = open_bundle(double_model, profiles=PROFILES, slots=1, arena=arena)
    with pytest.warns(KeptViewWarning), session.borrow(feeds(4)) as views:
        kept = views["y"]
    session.close()
    assert arena.stats.in_use_bytes > 0
    other = open_bundle(double_model, profiles=PROFILES, slots=2, arena=arena)
    for number in range(4):
        other.run(feeds(number, 4))
    assert (kept == 8).all()
    other.close()
    del kept
    assert arena.stats.in_use_bytes == 0
    assert arena.stats.chunks == 0


def test_a_call_waits_instead_of_failing_when_kept_views_used_up_the_budget(make_bundle, double_model):
    from trtc.runtime import load

    path = make_bundle(double_model, profiles=PROFILES)
    with load(path, slots=2, threads=1, max_memory_bytes=2 * 4096) as session:
        with pytest.warns(KeptViewWarning), session.borrow(feeds(1)) as views:
            kept = views["y"]
        with session.borrow(feeds(2)), pytest.raises(SlotTimeoutError):
            session.run(feeds(3), timeout_s=0)
        session._warned = False
        with pytest.warns(KeptViewWarning), session.borrow(feeds(4)) as views:
            also = views["y"]
        with pytest.raises(MemoryBudgetError, match="4 KiB are needed, the budget is 8 KiB, 8 KiB of it mapped"):
            session.run(feeds(5))
        assert kept[0, 0] + also[0, 0] == 10
        del also
        assert (session.run(feeds(6))["y"] == 12).all()


def test_a_borrow_that_is_dropped_while_open_is_reclaimed_and_counted(session):
    borrow = session.borrow(feeds(1))
    views = borrow.__enter__()
    assert views["y"][0, 0] == 2
    with pytest.warns(LostLeaseWarning, match="dropped before its block ended"):
        del borrow  # the last reference
    with pytest.raises(LeaseError):
        views["y"]
    assert session.stats.lost_leases == 1
    with session.borrow(feeds(2)), session.borrow(feeds(3)):
        pass


def test_a_borrow_that_was_never_entered_costs_nothing(session):
    session.borrow(feeds(1))
    gc.collect()
    assert session.stats.lost_leases == 0


def test_a_borrow_is_entered_once_at_a_time(session):
    borrow = session.borrow(feeds(1))
    with borrow, pytest.raises(LeaseError, match="open already"):
        borrow.__enter__()
    with borrow as views:
        assert views["y"][0, 0] == 2


def test_an_exception_inside_the_block_ends_the_lease(open_bundle, double_model):
    session = open_bundle(double_model, profiles=PROFILES, slots=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), session.borrow(feeds(1)):
            raise ZeroDivisionError
        assert (session.run(feeds(2), timeout_s=0)["y"] == 4).all()


def test_a_failing_engine_inside_borrow_ends_the_lease(open_bundle, graphs):
    node = graphs.node("Reshape", ["x", "shape"], ["y"])
    model = graphs.model(
        [node], [graphs.value("x", ("n",)), graphs.value("shape", (2,), 7)], [graphs.value("y", (2, 2))]
    )
    session = open_bundle(model, profiles=({"n": (1, 8)},), slots=1)
    x = np.arange(4, dtype=F)
    for _ in range(3):
        with pytest.raises(EngineError), session.borrow({"x": x, "shape": np.array([3, 3])}):
            pass
        with session.borrow({"x": x, "shape": np.array([2, 2])}, timeout_s=0) as views:
            assert views["y"].tolist() == [[0, 1], [2, 3]]


def test_padding_is_cut_from_views_as_well(open_bundle, double_model):
    session = open_bundle(
        double_model, profiles=PROFILES, mode="bucket", padding=(PadRule("batch", "rows", {}),), slots=1
    )
    for batch in (3, 1, 4, 3):
        with session.borrow(feeds(batch, batch)) as views:
            assert views["y"].tolist() == [[2 * batch] * 4] * batch
        session._warned = False
        with pytest.warns(KeptViewWarning), session.borrow(feeds(9, batch)) as views:
            kept = views["y"][-1:]
        assert (session.run(feeds(1, batch))["y"] == 2).all()
        assert (kept == 18).all()


def test_what_a_caller_writes_into_a_view_reaches_no_other_call(session):
    with session.borrow(feeds(1)) as views:
        views["y"][...] = 99
    for _ in range(3):
        assert (session.run(feeds(1))["y"] == 2).all()


def test_views_on_a_device_are_refused_where_the_engine_has_none(make_bundle, double_model):
    from trtc.runtime import UsageError, load

    session = load(make_bundle(double_model, profiles=PROFILES), slots=1, arena=Arena())
    with session, pytest.raises(UsageError, match="engine cpu of this session computes on no device of its own"):
        session.borrow(feeds(1), device=True)
