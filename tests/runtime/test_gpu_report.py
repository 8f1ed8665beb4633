"""What fills the GPU report works, as far as it can without a GPU: its peer, its figures, its page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gpu import report
from gpu.measure import calls_per_s, latency
from gpu.subject import targets_for
from trtc.runtime import Arena, load

ENGINE_KINDS = ["rtx"]
F = np.float32


def test_the_naive_peer_gives_right_answers_and_changes_its_profile(make_bundle, double_model):
    path = make_bundle(double_model, profiles=({"batch": (1, 4)}, {"batch": (8, 16)}))
    with load(path, slots=1, arena=Arena()) as session:
        peer = report.naive_peer(session)
        for batch in (2, 9, 1, 16, 16, 4):
            x = np.full((batch, 4), batch, F)
            assert (peer.run({"x": x}, {"batch": batch}, ["y"])["y"] == 2 * batch).all()
        peer.close()


def test_memory_is_reported_as_predicted_and_as_it_is(make_bundle, double_model):
    path = make_bundle(double_model, profiles=({"batch": (1, 4)},), mode="bucket")
    with load(path, slots=1, arena=Arena()) as session:
        rows = dict(report.memory("rtx", session))
    assert rows["rtx: bytes of one call, by profile"] == "p0 1512"
    assert rows["rtx: bytes of a slot, predicted / in use"] == "1512 / 1536"


def test_latency_and_rate_count_every_call():
    calls = []
    found = latency(lambda: calls.append(1), 50, warm_up=3)
    assert (found.count, len(calls)) == (50, 53)
    assert 0 <= found.median_ms <= found.p90_ms <= found.p99_ms
    assert calls_per_s(calls.append, [1, 2, 3], 2, rounds=2) > 0
    assert len(calls) == 53 + 3 + 2 * 3


@pytest.mark.parametrize(("capability", "refused"), [("sm89", False), ("sm90", True)])
def test_a_gpu_that_rtx_does_not_build_for_is_said_with_the_reason(capability, refused):
    found = targets_for(SimpleNamespace(compute_capability=capability, name="NVIDIA H200"))
    assert (found[f"rtx:{capability}"] != "") == refused
    if refused:
        assert "TensorRT for RTX builds no kernels for sm90 (NVIDIA H200)" in found["rtx:sm90"]
    assert "tensorrt is not installed" in found["tensorrt"]


def test_the_page_says_that_it_was_not_run_or_holds_figures(repository):
    page = (repository / "docs" / "gpu-report.md").read_text()
    assert page == report.NOT_RUN or (page.startswith(report.INTRODUCTION) and "| figure | value |" in page)
    gpu = SimpleNamespace(name="G", compute_capability="sm89", driver_version="580", cuda_version="13.0")
    made = report.page(gpu, "3 passed\n", [("rtx: batch 1", "0.1 / 0.2 / 0.3")])
    assert made.startswith(report.INTRODUCTION)
    assert "| rtx: batch 1 | 0.1 / 0.2 / 0.3 |" in made
    assert "3 passed" in made
