"""Tracing a session: the same answers, spans that nest, nodes on the same clock, and nothing left behind."""

from __future__ import annotations

import json
import threading
from itertools import pairwise

import numpy as np
import pytest

from trtc.profiles import PadRule
from trtc.runtime import RequestError, SessionClosedError, UsageError
from trtc.runtime.trace_events import CALL, ENQUEUE, EXECUTE, PHASES, WAIT, Count, Span, chrome_trace

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def session(open_bundle, double_model):
    return open_bundle(
        double_model, profiles=({"batch": (1, 4)},), mode="bucket", padding=(PadRule("batch", "rows", {}),)
    )


def test_traced_calls_give_the_same_answers(session):
    before = session.run({"x": X})
    with session.trace() as trace:
        during = session.run({"x": X})
    after = session.run({"x": X})
    for found in (during, after):
        np.testing.assert_array_equal(found["y"], before["y"])
    assert [span.name for span in trace.spans].count(CALL) == 1


def test_the_parts_of_a_call_lie_in_it_one_after_the_other(session):
    with session.trace() as trace:
        session.run({"x": X})
        session.run({"x": X[:2]})
    calls = [span for span in trace.spans if span.name == CALL]
    parts = [span for span in trace.spans if span.name in PHASES]
    for i, call in enumerate(calls):
        mine = parts[i * len(PHASES) : (i + 1) * len(PHASES)]
        assert [span.name for span in mine] == list(PHASES)
        edges = [call.start_ns, *(edge for span in mine for edge in (span.start_ns, span.end_ns)), call.end_ns]
        assert edges == sorted(edges)
        assert all(a.end_ns == b.start_ns for a, b in pairwise(mine))
    executed = [span for span in trace.spans if span.name == EXECUTE]
    inner = [span for span in trace.spans if span.name in (ENQUEUE, WAIT)]
    assert inner[0].start_ns == executed[0].start_ns
    assert inner[1].end_ns == executed[0].end_ns
    assert calls[0].args == {"sizes": {"batch": 3}, "run_sizes": {"batch": 4}, "padded": True, "route": "prepared"}


def test_a_second_call_of_a_size_finds_its_route_ready(session):
    with session.trace() as trace:
        session.run({"x": X})
        session.run({"x": X})
    assert [span.args["route"] for span in trace.spans if span.name == CALL] == ["prepared", "ready"]


def test_nodes_lie_inside_the_execution_of_their_call_on_its_thread(session):
    with session.trace() as trace:
        for _ in range(3):
            session.run({"x": X})
    executed = [span for span in trace.spans if span.name == EXECUTE]
    assert len(trace.nodes) == len(executed) == 3
    slack_ns = 1_000_000  # two clocks are put on one, at the resolution of a microsecond
    for node, span in zip(trace.nodes, executed, strict=True):
        assert span.start_ns - slack_ns <= node.start_ns <= node.start_ns + node.duration_ns <= span.end_ns + slack_ns
        assert (node.op, node.thread) == ("Add", threading.get_native_id())
        assert (node.outputs[0].shape, node.written_bytes >= 64) == ((4, 4), True)


def test_without_nodes_no_copy_of_the_engine_is_opened(session):
    reserved = session.stats.arena.allocations
    with session.trace(nodes=False) as trace:
        session.run({"x": X})
        assert session.stats.arena.allocations == reserved
    assert trace.nodes == ()
    assert len(trace.spans) == 1 + len(PHASES) + 2


def test_an_engine_without_a_profiler_is_traced_up_to_its_door(open_bundle, double_model):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},), backend="null", engine={"backend": "null"})
    with session.trace() as trace:
        session.run({"x": X})
    assert trace.nodes == ()
    assert trace.spans


def test_a_trace_leaves_neither_memory_nor_its_function_behind(session):
    fast, in_use = session._run.__code__, session.stats.arena.in_use_bytes
    with session.trace():
        assert session._run.__code__ is not fast
        session.run({"x": X})
    assert session._run.__code__ is fast
    assert session.stats.arena.in_use_bytes == in_use


def test_a_refused_request_does_not_end_a_trace(session):
    with session.trace() as trace:
        with pytest.raises(RequestError):
            session.run({"x": np.zeros((9, 4), np.float32)})
        session.run({"x": X})
    assert [span.name for span in trace.spans].count(CALL) == 1
    assert session.run({"x": X})["y"].shape == (3, 4)


def test_threads_are_told_apart(session):
    with session.trace() as trace:
        threads = [threading.Thread(target=session.run, args=({"x": X},)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    calls = [span for span in trace.spans if span.name == CALL]
    assert len(calls) == 3
    for call in calls:
        inner = [s for s in trace.spans if s.thread == call.thread and call.start_ns <= s.start_ns <= call.end_ns]
        assert len(inner) >= len(PHASES)


def test_a_session_has_one_trace_at_a_time(session):
    with session.trace(nodes=False):
        with pytest.raises(UsageError, match="is traced already"), session.trace():
            pass
        session.run({"x": X})
    with session.trace(nodes=False) as again:
        session.run({"x": X})
    assert again.spans


def test_a_closed_session_is_not_traced(session):
    session.close()
    with pytest.raises(SessionClosedError), session.trace():
        pass


def test_a_session_that_is_closed_inside_its_trace_stays_closed(session):
    with session.trace():
        session.close()
    with pytest.raises(SessionClosedError):
        session.run({"x": X})


def test_the_file_is_in_chromes_format(session, tmp_path):
    with session.trace() as trace:
        session.run({"x": X})
    trace.write(tmp_path / "t.json")
    data = json.loads((tmp_path / "t.json").read_text())
    for event in data["traceEvents"]:
        assert {"name", "ph", "pid", "tid"} <= event.keys()
        assert event["ph"] in "XCM"
        if event["ph"] == "X":
            assert event["ts"] >= 0 <= event["dur"]
    assert "node" in {event.get("cat") for event in data["traceEvents"]}
    names = {event["name"] for event in data["traceEvents"]}
    assert {CALL, *PHASES, "arena, bytes", "inside the library"} <= names
    assert data["otherData"]["engine"] == "cpu"


def test_events_are_written_from_the_first_one_on_in_order():
    spans = [Span("b", 5000, 9000, 7), Span("a", 3000, 9500, 7)]
    data = chrome_trace(spans, [Count("c", 4000, {"bytes": 1})], [], {})
    timed = [(e["name"], e["ts"], e.get("dur")) for e in data["traceEvents"] if "ts" in e]
    assert timed == [("a", 0.0, 6.5), ("c", 1.0, None), ("b", 2.0, 4.0)]


def test_a_trace_that_cannot_be_written_is_an_error_of_ours(session, tmp_path):
    from trtc.profiles import HostError

    with session.trace(nodes=False) as trace:
        session.run({"x": X})
    with pytest.raises(HostError):
        trace.write(tmp_path / "none" / "t.json")


def test_a_session_of_one_profile_is_traced_in_that_profile(make_bundle, double_model):
    from trtc.runtime import Arena, load

    profiles = ({"batch": (1, 2)}, {"batch": (3, 4)})
    path = make_bundle(double_model, profiles=profiles)
    with load(path, profile="p1", arena=Arena()) as session, session.trace() as trace:
        session.run({"x": X})
        with pytest.raises(RequestError):
            session.run({"x": X[:1]})
    assert len(trace.nodes) == 1


def test_a_bundle_that_was_replaced_meanwhile_is_not_traced(make_bundle, double_model, mix_model, tmp_path):
    import shutil

    from trtc.runtime import Arena, load

    path = shutil.copytree(make_bundle(double_model, profiles=({"batch": (1, 4)},)), tmp_path / "model.trtc")
    with load(path, arena=Arena()) as session:
        shutil.rmtree(path)
        shutil.copytree(make_bundle(mix_model, profiles=({"batch": (1, 4), "seq": (1, 4)},)), path)
        with pytest.raises(UsageError, match="was replaced since it was loaded"), session.trace():
            pass
        np.testing.assert_array_equal(session.run({"x": X})["y"], 2 * X)
