"""TensorRT's engines on a real GPU: right in every bucket, with and without graphs, in the memory that was said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gpu.subject import BATCH, LENGTHS, TOLERANCE, feeds, mixed_sizes


def assert_near(found, expected):
    for name, right in expected.items():
        assert found[name].shape == right.shape
        assert float(np.abs(found[name] - right).max()) <= TOLERANCE * (1 + float(np.abs(right).max())), name


@pytest.mark.parametrize("length", [5, *LENGTHS, *(size - 7 for size in LENGTHS)])
@pytest.mark.parametrize("batch", [1, 3, BATCH])
def test_every_bucket_equals_onnx_runtime(open_session, reference, batch, length):
    session = open_session(slots=1)
    for seed in range(3):
        given = feeds(batch, length, seed)
        assert_near(session.run(given), reference(given))


def test_a_graph_gives_what_the_run_without_it_gives(open_session, monkeypatch):
    with_graph = open_session(slots=1)
    requests = [feeds(batch, length, i) for i, (batch, length) in enumerate(mixed_sizes(20))]
    found = [[with_graph.run(given) for given in requests] for _ in range(2)][1]
    assert with_graph.stats.device.graphs == len(LENGTHS)
    assert with_graph.stats.device.without_graph == 0
    monkeypatch.setattr("trtc.engines.tensorrt.context_run.capture", lambda *_: None)
    without = open_session(slots=1)
    for given, graphed in zip(requests, found, strict=True):
        for name, array in without.run(given).items():
            np.testing.assert_array_equal(array, graphed[name])
    assert without.stats.device.graphs == 0


def test_profiles_that_alternate_keep_their_answers_and_their_contexts(open_session, reference):
    session = open_session(slots=1)
    a, b = feeds(2, LENGTHS[0]), feeds(2, LENGTHS[-1])
    for given in (a, b, a, b, b, a) * 3:
        assert_near(session.run(given), reference(given))
    assert session.stats.device.contexts == 2


def test_memory_is_what_was_said_and_stays_so(open_session):
    from cuda.bindings import driver

    def free_bytes():
        status, free, _ = driver.cuMemGetInfo()
        assert int(status) == 0
        return free

    session = open_session(slots=2)
    stats = session.stats.device
    assert stats.in_use_bytes >= 2 * stats.lane_bytes
    assert stats.in_use_bytes <= 2 * (stats.lane_bytes + 512), "rounding of two blocks a lane"
    requests = [feeds(batch, length) for batch, length in mixed_sizes(30)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(session.run, requests * 2))
        before, allocations = free_bytes(), session.stats.device.allocations
        list(pool.map(session.run, requests * 4))
    assert session.stats.device.allocations == allocations
    assert free_bytes() >= before - 2 * 2**20, "the driver hands out 2 MiB at a time"


def test_callers_on_several_slots_get_their_own_answers(open_session, reference):
    session = open_session(slots=3)
    requests = [feeds(batch, length, i) for i, (batch, length) in enumerate(mixed_sizes(40))]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(session.run, requests))
    for given, outputs in zip(requests, found, strict=True):
        assert_near(outputs, reference(given))


def test_views_lie_in_memory_that_the_device_reads_itself(open_session, reference):
    session = open_session(slots=1)
    given = feeds(2, 20)
    with session.borrow(given) as views:
        assert_near(views, reference(given))


def test_kernels_are_found_again_at_the_next_start(open_session, target):
    if not target.startswith("rtx"):
        pytest.skip("full TensorRT compiles no kernels where it runs")
    first = open_session(slots=1)
    first.run(feeds(1, LENGTHS[0]))
    first.close()
    assert open_session(slots=1)._engine._opened.cache.loaded


def test_a_device_by_its_uuid(open_session, gpu):
    session = open_session(slots=1, device=gpu.uuid)
    assert session.stats.device.device.startswith(f"GPU {gpu.index} ")
