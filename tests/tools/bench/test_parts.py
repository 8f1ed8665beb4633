"""Parts of a call come from other calls than the timed ones; what is printed never contradicts itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trtc.tools.bench.parts import enqueue_line, part_texts, parts_text


def case(median_s, **parts):
    """A case whose timed calls take ``median_s``, and whose parts are from other calls."""
    summary = SimpleNamespace(median_s=median_s)
    return SimpleNamespace(latency=summary, service=summary, parts=parts)


FAST = case(0.010, run=0.010, execute=0.008, enqueue=0.008, check=0.001)
SLOW = case(0.002, run=0.010, execute=0.008, enqueue=0.008, check=0.001)


def test_enqueue_time_stands_beside_the_latency_of_its_own_calls():
    assert enqueue_line(FAST) == "Enqueue Time: median = 8 ms (of other calls, whose Latency: median = 10 ms)"


def test_enqueue_time_is_never_more_than_the_latency_above_it():
    line = enqueue_line(SLOW)
    assert line.startswith("Enqueue Time: left out, ")
    assert "Latency: median = 10 ms" in line
    assert "8 ms" not in line


def test_an_engine_that_tells_no_enqueue_has_no_line():
    assert not enqueue_line(case(0.010, run=0.010, execute=0.008))


@pytest.mark.parametrize(
    ("found", "texts"),
    [
        pytest.param(FAST, {"check": "1.0 ms", "execute": "8.0 ms"}, id="times"),
        pytest.param(SLOW, {"check": "10.0%", "execute": "80.0%"}, id="shares"),
    ],
)
def test_parts_of_slower_calls_are_shares(found, texts):
    assert part_texts(found) == texts
    assert ("as shares of other calls, which were slower (10.0 ms)" in parts_text(found)) == (found is SLOW)
    assert all(f"{name} {text}" in parts_text(found) for name, text in texts.items())
