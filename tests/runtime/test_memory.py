"""Memory of sessions: planned, shared, bounded, and constant after warm-up."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from trtc.engines.layout import HOST_ALIGNMENT_BYTES
from trtc.engines.memory import PAGE_BYTES
from trtc.profiles import PadRule
from trtc.runtime import Arena, MemoryBudgetError, load
from trtc.runtime.arena import default_arena

F = np.float32
BOUNDED = ({"batch": (1, 4), "seq": (1, 16)},)
OPEN = ({"batch": (0, None), "seq": (0, None)},)


def request(batch, seq, number=1):
    return {name: np.full((batch, seq, 4), number, F) for name in "ab"}


def mixed(session, seed=0, count=100):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        batch, seq = int(rng.integers(1, 5)), int(rng.integers(1, 17))
        session.run(request(batch, seq))
        with session.borrow(request(batch, seq)):
            pass


def allocations_after_warm_up(session):
    mixed(session)
    before = session.stats.arena.allocations
    mixed(session, seed=1)
    return session.stats.arena.allocations - before


@pytest.mark.parametrize("profiles", [BOUNDED, OPEN], ids=["bounded", "open"])
def test_no_memory_is_reserved_after_warm_up(open_bundle, mix_model, profiles):
    session = open_bundle(mix_model, profiles=profiles, slots=1)
    session.run(request(4, 16))
    assert allocations_after_warm_up(session) == 0


def test_a_planted_reservation_shows_in_that_count(open_bundle, mix_model, monkeypatch):
    session = open_bundle(mix_model, profiles=BOUNDED, slots=1)
    core = session._core
    perform = core.perform

    def leaky(*args):
        core._arena.release(core._arena.reserve(1))
        return perform(*args)

    monkeypatch.setattr(core, "perform", leaky)
    assert allocations_after_warm_up(session) > 0


def test_bounded_profiles_are_reserved_when_the_bundle_is_loaded(open_bundle, mix_model):
    session = open_bundle(mix_model, profiles=BOUNDED, slots=3)
    stats = session.stats
    assert stats.slot_bytes == 3 * 4 * 16 * 4 * 4 + 4 * 16 * 16 * 4
    assert stats.arena.allocations == 3
    assert stats.arena.in_use_bytes == 3 * -(-stats.slot_bytes // PAGE_BYTES) * PAGE_BYTES
    mixed(session)
    assert session.stats.slot_growths == 0
    assert session.stats.arena.allocations == 3


def test_slots_with_open_maxima_grow_and_are_counted(open_bundle, mix_model):
    session = open_bundle(mix_model, profiles=OPEN, slots=1)
    assert session.stats.slot_bytes == 0
    sizes = [1, 200, 3, 400, 399, 1]
    for seq in sizes:
        assert (session.run(request(1, seq, 3))["y"] == 6).all()
    stats = session.stats
    assert stats.slot_growths == 2
    assert stats.arena.allocations == 1 + 2
    assert 0 < stats.slot_used_bytes < stats.arena.in_use_bytes
    assert 0 < stats.fragmentation < 1


def test_places_are_aligned_and_blocks_start_at_pages(open_bundle, mix_model):
    session = open_bundle(mix_model, profiles=BOUNDED, slots=2)
    session.run(request(3, 5))
    for slot in session._core.pool.slots:
        assert slot.address % PAGE_BYTES == 0
        for route in slot.routes.values():
            for view in [*route.outputs.values(), *(view for _, view in route.inputs)]:
                assert view.ctypes.data % HOST_ALIGNMENT_BYTES == 0


def test_a_budget_that_the_slots_do_not_fit_in_fails_at_load_with_the_numbers(make_bundle, mix_model):
    path = make_bundle(mix_model, profiles=BOUNDED)
    with pytest.raises(
        MemoryBudgetError, match="8 KiB are needed, the budget is 12 KiB, 8 KiB of it mapped, 8 KiB of these in use"
    ):
        load(path, slots=2, threads=1, max_memory_bytes=3 * PAGE_BYTES)
    with pytest.raises(MemoryBudgetError, match="8 KiB are needed, the budget is 0 bytes; raise"):
        load(path, slots=1, threads=1, max_memory_bytes=0)
    with load(path, slots=1, threads=1, max_memory_bytes=2 * PAGE_BYTES) as session:
        assert (session.run(request(4, 16))["y"] == 2).all()


def test_two_sessions_share_one_budget(make_bundle, mix_model):
    path = make_bundle(mix_model, profiles=BOUNDED)
    arena = Arena(4 * PAGE_BYTES)
    with load(path, slots=1, threads=1, arena=arena) as one, load(path, slots=1, threads=1, arena=arena) as two:
        assert (one.run(request(1, 2))["y"] == two.run(request(1, 2))["y"]).all()
        assert one.stats.arena == two.stats.arena
        with pytest.raises(MemoryBudgetError, match="the budget is 16 KiB, 16 KiB of it mapped"):
            load(path, slots=1, threads=1, arena=arena)
        assert arena.stats.in_use_bytes == 4 * PAGE_BYTES
    assert arena.stats.in_use_bytes == 0


def test_a_growing_slot_that_hits_the_budget_fails_and_keeps_serving_what_fits(make_bundle, mix_model):
    path = make_bundle(mix_model, profiles=OPEN)
    with load(path, slots=1, threads=1, max_memory_bytes=64 * PAGE_BYTES) as session:
        assert (session.run(request(1, 8))["y"] == 2).all()
        for _ in range(2):
            with pytest.raises(MemoryBudgetError, match="the budget is 256 KiB"):
                session.run(request(64, 64))
            assert (session.run(request(1, 8, 2))["y"] == 4).all()


def test_sessions_use_the_arena_of_the_process_unless_told_otherwise(make_bundle, double_model):
    path = make_bundle(double_model, profiles=({"batch": (1, 4)},))
    before = default_arena().stats.in_use_bytes
    with load(path, slots=2, threads=1) as session:
        assert session.stats.arena.in_use_bytes == before + 2 * PAGE_BYTES
    assert default_arena().stats.in_use_bytes == before


def test_a_session_that_is_dropped_without_close_gives_its_memory_back(make_bundle, double_model):
    arena = Arena()
    session = load(make_bundle(double_model, profiles=({"batch": (1, 4)},)), slots=2, threads=1, arena=arena)
    session.run({"x": np.ones((1, 4), F)})
    assert arena.stats.in_use_bytes == 2 * PAGE_BYTES
    gc.disable()
    try:
        del session
        assert arena.stats.in_use_bytes == 0, "a session must not stand in a reference cycle"
    finally:
        gc.enable()


def test_the_largest_of_several_profiles_decides_about_a_slot(open_bundle, mix_model):
    session = open_bundle(
        mix_model,
        profiles=({"batch": (1, 4), "seq": (1, 4)}, {"batch": (1, 1), "seq": (1, 64)}),
        padding=(PadRule("seq", "right", {"a": 0, "b": 0}),),
        mode="bucket",
        slots=1,
    )
    assert session.stats.slot_bytes == 3 * 64 * 4 * 4 + 64 * 64 * 4
    for batch, seq in [(4, 4), (1, 64), (1, 33), (3, 2)]:
        assert (session.run(request(batch, seq))["y"] == 2).all()
    assert session.stats.slot_growths == 0
