"""The arena: blocks alive together never overlap, everything given back is free again, the budget holds."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trtc.engines.chunks import CHUNK_BYTES
from trtc.engines.free_list import FreeList
from trtc.engines.memory import PAGE_BYTES, bytes_text
from trtc.profiles import HostError
from trtc.runtime import Arena, MemoryBudgetError

SIZE = 64


class FreeListAgainstBytes(RuleBasedStateMachine):
    """The model is one byte for each byte of the chunk: 0 free, 1 taken."""

    def __init__(self):
        super().__init__()
        self.list = FreeList(SIZE)
        self.taken = np.zeros(SIZE, np.uint8)
        self.spans = []

    def free_runs(self):
        edges = np.flatnonzero(np.diff(np.concatenate([[1], self.taken, [1]])))
        return [int(end - start) for start, end in zip(edges[::2], edges[1::2], strict=True)]

    @rule(size=st.integers(1, SIZE))
    def take(self, size):
        fitting = [run for run in self.free_runs() if run >= size]
        offset = self.list.take(size)
        if offset is None:
            assert not fitting, f"{size} bytes were refused although runs of {fitting} are free"
            return
        assert not self.taken[offset : offset + size].any(), "handed out bytes that are taken"
        assert offset + size <= SIZE
        before = self.free_runs()
        self.taken[offset : offset + size] = 1
        self.spans.append((offset, size))
        lost = set(before) - set(self.free_runs())
        assert not lost or min(lost) == min(fitting), "the tightest run must be used"

    @precondition(lambda self: self.spans)
    @rule(data=st.data())
    def give(self, data):
        offset, size = self.spans.pop(data.draw(st.integers(0, len(self.spans) - 1)))
        self.list.give(offset, size)
        self.taken[offset : offset + size] = 0

    @rule(offset=st.integers(0, SIZE - 1), size=st.integers(1, 8))
    def giving_what_is_free_is_refused(self, offset, size):
        size = min(size, SIZE - offset)
        if not self.taken[offset : offset + size].all():
            try:
                self.list.give(offset, size)
            except ValueError as error:
                assert "free already" in str(error)  # noqa: PT017 (a rule of a state machine)
            else:
                raise AssertionError("bytes were given back twice")

    @invariant()
    def figures_are_right(self):
        runs = self.free_runs()
        assert self.list.free_bytes == sum(runs)
        assert self.list.largest_bytes == max(runs, default=0), "neighbours that are free must be one span"


TestFreeList = FreeListAgainstBytes.TestCase


class ArenaAgainstAddresses(RuleBasedStateMachine):
    """The model is the set of blocks alive; each is filled with its own number, which nothing may change."""

    BUDGET = 8 * CHUNK_BYTES

    def __init__(self):
        super().__init__()
        self.arena = Arena(self.BUDGET)
        self.blocks = {}
        self.number = 0
        self.peak = 0
        self.count = 0

    @rule(
        size=st.one_of(
            st.integers(0, 3 * PAGE_BYTES),
            st.sampled_from([CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 4 * CHUNK_BYTES]),
        )
    )
    def reserve(self, size):
        before = self.arena.stats
        try:
            block = self.arena.reserve(size)
        except MemoryBudgetError as error:
            assert f"the budget is {bytes_text(self.BUDGET)}" in str(error)  # noqa: PT017 (a rule of a state machine)
            pages = max(1, -(-size // PAGE_BYTES)) * PAGE_BYTES
            assert before.reserved_bytes + pages > self.BUDGET
            assert before.largest_free_bytes < pages
            assert self.arena.stats == before
            return
        assert block.address % PAGE_BYTES == 0
        assert block.size_bytes >= size
        assert block.size_bytes % PAGE_BYTES == 0
        assert len(block.buffer) == block.size_bytes
        self.number += 1
        self.count += 1
        np.frombuffer(block.buffer, np.uint32)[...] = self.number
        self.blocks[self.number] = block
        self.peak = max(self.peak, self.in_use())

    @precondition(lambda self: self.blocks)
    @rule(data=st.data())
    def release(self, data):
        block = self.blocks.pop(data.draw(st.sampled_from(sorted(self.blocks))))
        self.arena.release(block)
        before = self.arena.stats
        with pytest.raises(ValueError, match="free already"):
            self.arena.release(block)
        assert self.arena.stats == before

    @precondition(lambda self: self.blocks)
    @rule(data=st.data(), views=st.integers(0, 3))
    def release_after_views(self, data, views):
        number = data.draw(st.sampled_from(sorted(self.blocks)))
        block = self.blocks[number]
        arrays = [np.frombuffer(block.buffer, np.uint8) for _ in range(views)]
        self.arena.release_after(block, arrays)
        while arrays:
            assert self.arena.stats.in_use_bytes == self.in_use(), "given back while a view is alive"
            arrays.pop()
        del self.blocks[number]

    def in_use(self):
        return sum(block.size_bytes for block in self.blocks.values())

    @invariant()
    def blocks_keep_their_bytes_and_never_overlap(self):
        for number, block in self.blocks.items():
            assert (np.frombuffer(block.buffer, np.uint32) == number).all()
        ends = sorted((block.address, block.address + block.size_bytes) for block in self.blocks.values())
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))

    @invariant()
    def figures_are_right(self):
        stats = self.arena.stats
        assert stats.in_use_bytes == self.in_use()
        assert stats.peak_bytes == self.peak
        assert stats.allocations == self.count
        assert stats.reserved_bytes <= self.BUDGET
        assert stats.reserved_bytes >= stats.in_use_bytes
        free = stats.reserved_bytes - stats.in_use_bytes
        assert stats.largest_free_bytes <= free
        assert stats.fragmentation == (1 - stats.largest_free_bytes / free if free else 0)
        if not self.blocks:
            assert (stats.reserved_bytes, stats.chunks) == (0, 0)


TestArena = ArenaAgainstAddresses.TestCase
TestArena.settings = settings(max_examples=30, stateful_step_count=25)


def test_fragmentation_is_the_share_of_free_bytes_outside_of_the_largest_span():
    arena = Arena()
    pages = CHUNK_BYTES // PAGE_BYTES
    blocks = [arena.reserve(1) for _ in range(pages)]
    assert arena.stats.fragmentation == 0
    for i in (0, 2, 3, 5):
        arena.release(blocks[i])
    assert arena.stats.largest_free_bytes == 2 * PAGE_BYTES
    assert arena.stats.fragmentation == 0.5
    assert arena.stats.chunks == 1


def test_a_block_that_finds_room_in_a_chunk_maps_nothing_new():
    arena = Arena()
    held = [arena.reserve(1) for _ in range(3)]
    arena.release(held[1])
    assert arena.reserve(1).address == held[1].address
    assert arena.stats.reserved_bytes == CHUNK_BYTES


def test_a_small_budget_is_used_to_its_last_page():
    arena = Arena(3 * PAGE_BYTES)
    blocks = [arena.reserve(PAGE_BYTES) for _ in range(3)]
    with pytest.raises(MemoryBudgetError, match="4 KiB are needed, the budget is 12 KiB, 12 KiB of it"):
        arena.reserve(1)
    arena.release(blocks[0])
    arena.reserve(1)


@pytest.mark.parametrize("size", [2**50, 2**63, 2**70])
def test_more_than_the_system_has_is_an_error_of_the_host(size):
    arena = Arena()
    with pytest.raises(HostError, match="the system refuses"):
        arena.reserve(size)
    assert arena.stats.in_use_bytes == 0


def test_a_negative_size_is_refused():
    with pytest.raises(ValueError, match="reserve 0 or more"):
        Arena().reserve(-1)


def test_threads_never_get_the_same_bytes():
    arena = Arena()

    def work(number):
        for i in range(200):
            block = arena.reserve(1 + i % 3 * PAGE_BYTES)
            array = np.frombuffer(block.buffer, np.uint32)
            array[...] = number
            assert (array == number).all()
            del array
            arena.release(block)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert arena.stats.in_use_bytes == 0
    assert arena.stats.allocations == 800


def test_a_block_is_given_back_when_its_last_view_dies_in_a_collection():
    class Ring:
        def __init__(self, view):
            self.view, self.me = view, self

    arena = Arena()
    block = arena.reserve(1)
    view = np.frombuffer(block.buffer, np.uint8)
    arena.release_after(block, [view])
    ring = Ring(view)
    del view, ring
    gc.collect()
    assert arena.stats.in_use_bytes == 0
