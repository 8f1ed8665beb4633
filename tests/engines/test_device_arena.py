"""Device memory: blocks never overlap, are aligned, and go back to the driver; size classes keep what is hot."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines.chunks import CHUNK_BYTES
from trtc.engines.tensorrt.device_arena import ALIGNMENT_BYTES, DeviceArena
from trtc.engines.tensorrt.late import LateOutput
from trtc.engines.tensorrt.size_classes import SizeClasses, size_class
from trtc.profiles import HostError


@dataclass
class Driver:
    """Gives buffers at made-up addresses, as long as there is memory."""

    limit: int = 2**40
    held: int = 0
    next: int = 2**20
    buffers: list = field(default_factory=list)

    def allocate(self, size):
        if self.held + size > self.limit:
            raise MemoryError("out of memory")
        self.held += size
        buffer = Buffer(self, self.next, size)
        self.next += size + 512
        return buffer


@dataclass
class Buffer:
    driver: Driver
    handle: int
    size: int

    def close(self):
        self.driver.held -= self.size


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def arena(driver):
    return DeviceArena(driver.allocate, "GPU 0")


@given(st.lists(st.one_of(st.integers(0, 5 * 2**20), st.none()), max_size=40), st.randoms())
def test_blocks_that_are_held_together_never_overlap(steps, random):
    driver = Driver()
    arena = DeviceArena(driver.allocate, "GPU 0")
    held = []
    for step in steps:
        if step is None and held:
            arena.release(held.pop(random.randrange(len(held))))
        elif step is not None:
            held.append(arena.reserve(step))
            assert held[-1].size_bytes >= step
        ends = sorted((b.address, b.address + b.size_bytes) for b in held)
        assert all(first[1] <= second[0] for first, second in pairwise(ends))
        assert all(b.address % ALIGNMENT_BYTES == 0 == b.size_bytes % ALIGNMENT_BYTES for b in held)
        figures = arena.figures
        assert figures.in_use_bytes == sum(b.size_bytes for b in held) <= figures.reserved_bytes == driver.held
    for block in held:
        arena.release(block)
    assert driver.held == arena.figures.reserved_bytes == 0


def test_small_blocks_share_a_chunk_and_figures_say_how_it_is_used(arena, driver):
    blocks = [arena.reserve(1000) for _ in range(4)]
    assert driver.held == CHUNK_BYTES
    assert arena.figures.chunks_made == 1
    assert arena.figures.fragmentation == 0
    arena.release(blocks[1])
    figures = arena.figures
    assert (figures.in_use_bytes, figures.peak_bytes, figures.allocations) == (3 * 1024, 4 * 1024, 4)
    assert figures.fragmentation == pytest.approx(1024 / (CHUNK_BYTES - 3 * 1024))
    assert figures.largest_free_bytes == CHUNK_BYTES - 4 * 1024


def test_a_driver_without_memory_is_an_error_with_figures(driver, arena):
    driver.limit = CHUNK_BYTES
    arena.reserve(1)
    with pytest.raises(
        HostError, match=r"GPU 0 refuses 4194304 bytes \(out of memory\); trtc holds 2097152 there, 256"
    ):
        arena.reserve(2 * CHUNK_BYTES)


def test_a_finalizer_may_release_while_the_arena_is_at_work(arena, driver):
    """A finalizer runs anywhere, also in the thread that holds the lock: it must not wait for itself."""
    block = arena.reserve(10)
    with arena._lock:
        arena.release(block)
        assert driver.held == CHUNK_BYTES
    assert arena.figures.in_use_bytes == 0
    assert driver.held == 0


@given(st.integers(0, 2**40))
def test_a_class_holds_what_is_asked_for_and_little_more(size):
    found = size_class(size)
    assert found >= size
    assert found % ALIGNMENT_BYTES == 0
    assert found <= max(ALIGNMENT_BYTES, size + ALIGNMENT_BYTES, size * 1.25)
    assert size_class(found) == found


def test_hot_sizes_are_kept_and_cold_ones_go_back_when_nothing_is_in_use(arena):
    pool = SizeClasses(arena, cold_after=3)
    large = pool.take(2**20)
    pool.give(large)
    for _ in range(2):
        pool.give(pool.take(1000))
    assert pool.stats.held_bytes == 2**20 + 1024
    pool.give(pool.take(1000))
    assert pool.stats.held_bytes == 1024, "the large one was not asked for during the last 3 requests"
    assert (pool.stats.hits, pool.stats.misses, pool.stats.returned) == (2, 2, 1)
    assert arena.figures.in_use_bytes == 1024


def test_nothing_leaves_while_an_output_is_in_use(arena):
    pool = SizeClasses(arena, cold_after=1)
    cold, held = pool.take(2**20), pool.take(10)
    pool.give(cold)
    for _ in range(3):
        pool.give(pool.take(1000))
    assert pool.stats.held_bytes == 2**20 + 1024
    assert pool.stats.in_use_bytes == 256
    pool.give(held)
    assert pool.stats.held_bytes == 1024


def test_a_class_is_kept_again_after_it_was_cold(arena):
    pool = SizeClasses(arena, cold_after=1)
    for _ in range(2):
        pool.give(pool.take(2**20))
        pool.give(pool.take(10))
        pool.give(pool.take(10))
        assert pool.stats.held_bytes == 256


def test_what_waits_is_given_back_before_memory_runs_out(driver, arena):
    driver.limit = 8 * 2**20
    pool = SizeClasses(arena)
    pool.give(pool.take(6 * 2**20))
    block = pool.take(8 * 2**20)
    assert pool.stats.returned == 1
    with pytest.raises(HostError):
        pool.take(8 * 2**20)
    pool.give(block)
    pool.compact()
    assert arena.figures.reserved_bytes == pool.stats.held_bytes == 0


def test_a_late_output_that_grows_while_it_runs_moves_to_a_larger_block(arena):
    pool = SizeClasses(arena)
    late = LateOutput("y", np.dtype("f4"), pool)
    late.memory(10)
    late.memory(20)
    assert pool.stats.in_use_bytes == 256
    late.memory(1000)
    assert (pool.stats.in_use_bytes, pool.stats.held_bytes) == (1024, 256)
    late.give_back()
    assert pool.stats.in_use_bytes == 0


def test_an_error_in_a_callback_is_kept_and_the_library_gets_no_memory(driver, arena):
    driver.limit = 0
    late = LateOutput("y", np.dtype("f4"), SizeClasses(arena))
    assert late.memory(10) == 0
    with pytest.raises(HostError, match="refuses"):
        late.check()
    late.begin()
    late.check()
