"""The states of a slot, and the pool that never loses one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from trtc.runtime import Arena, LeaseError, SlotTimeoutError
from trtc.runtime.slots import Slot, SlotPool, SlotState

F, A, W, S = SlotState.FREE, SlotState.ALLOCATED, SlotState.INITIALISED, SlotState.FENCED
ALLOWED = {(F, A), (A, W), (W, S), (S, W), (A, F), (W, F)}


@pytest.fixture
def slot():
    return Slot(3, Arena().reserve(1))


@pytest.mark.parametrize(("start", "to"), sorted(ALLOWED))
def test_an_allowed_move_is_made(slot, start, to):
    slot.state = start
    slot.move(to)
    assert slot.state == to


@pytest.mark.parametrize(("start", "to"), sorted(set(product(SlotState, SlotState)) - ALLOWED))
def test_every_other_move_raises_and_leaves_the_state(slot, start, to):
    slot.state = start
    with pytest.raises(LeaseError, match=f"slot 3 is {start.name.lower()} and cannot become {to.name.lower()}"):
        slot.move(to)
    assert slot.state == start


@pytest.mark.parametrize("way", ["run", "run-careful", "borrow"])
def test_a_slot_that_somebody_touched_without_a_lease_is_never_used(open_bundle, double_model, way):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},), slots=1)
    feeds = {"x": np.ones((1, 4), np.float32)}
    session.run(feeds)
    (slot,) = session._core.pool.slots
    slot.state = SlotState.FENCED
    call = {
        "run": lambda: session.run(feeds),
        "run-careful": lambda: session.run(feeds, timeout_s=0),
        "borrow": lambda: session.borrow(feeds).__enter__(),
    }[way]
    with pytest.raises(LeaseError, match="slot 0 is fenced"):
        call()
    slot.state = SlotState.FREE
    session._core.pool.put(slot)


def test_a_slot_that_nobody_holds_and_that_is_not_free_is_found_again():
    pool = SlotPool([Slot(i, Arena().reserve(1)) for i in range(2)])
    held = pool.take()
    pool.take().state = SlotState.ALLOCATED  # dropped, as by an interrupt between the call and the assignment
    found = pool.wait(0, pool.lost)
    assert found is not held
    assert found.state == SlotState.FREE
    with pytest.raises(SlotTimeoutError):
        pool.wait(0, pool.lost)
    del held
    assert pool.wait(0, pool.lost).index != found.index


def test_a_slot_is_not_lost_while_a_route_an_engine_or_a_borrow_is_at_work_with_it(open_bundle, double_model):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},), slots=1)
    feeds = {"x": np.ones((1, 4), np.float32)}
    for _ in range(3):
        with session.borrow(feeds):
            assert session._core.pool.lost() is None
            with pytest.raises(SlotTimeoutError):
                session.run(feeds, timeout_s=0)
        assert session._core.pool.lost() is None
        session._core.pool.take()
        assert session.run(feeds, timeout_s=0)["y"].sum() == 8


def test_a_slot_that_is_given_back_goes_to_who_waits_and_not_to_who_comes_next():
    pool = SlotPool([Slot(0, Arena().reserve(1))])
    held = pool.take()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.wait, None, nobody)
        while not pool.waiting:
            pass
        pool.put(held)
        pool.wake()
        try:
            with pytest.raises(IndexError):
                pool.take()
            assert waiting.result() is held
        finally:
            pool.close("so that a failing test ends")


def test_a_caller_that_gives_up_leaves_the_slot_that_was_handed_to_it():
    pool = SlotPool([Slot(0, Arena().reserve(1))])
    held = pool.take()

    def give_up():
        pool.put(held)
        pool.wake()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pool.wait(None, give_up)
    assert pool.take() is held
    assert pool.waiting == 0


def nobody():
    return None
