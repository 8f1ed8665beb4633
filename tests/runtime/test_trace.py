"""Tracing a session: the same answers, spans that nest, nodes on the same clock, and nothing left behind."""

from __future__ import annotations

import json
import threading
from itertools import pairwise

import numpy as np
import onnx
import pytest
from chrome_trace import TraceFormatError, check_trace
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines.profile import NodeRun
from trtc.profiles import PadRule
from trtc.runtime import CancelledError, CancelToken, RequestError, SessionClosedError, TrtcError, UsageError
from trtc.runtime.errors import KeptViewWarning, LeaseError
from trtc.runtime.trace_events import (
    BORROW,
    CALLS,
    ENQUEUE,
    EXECUTE,
    HELD,
    PHASES,
    RUN,
    WAIT,
    Count,
    Held,
    Span,
    Traced,
    chrome_trace,
    nested,
)

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
    assert [span.name for span in trace.spans].count(RUN) == 1


def test_the_parts_of_a_call_lie_in_it_one_after_the_other(session):
    with session.trace() as trace:
        session.run({"x": X})
        session.run({"x": X[:2]})
    calls = [span for span in trace.spans if span.name == RUN]
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
    assert [span.args["route"] for span in trace.spans if span.name == RUN] == ["prepared", "ready"]


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
    doors = session._full, session._lend
    with session.trace():
        assert not hasattr(session._run, "__code__")
        session.run({"x": X})
    assert session._run.__code__ is fast
    assert (session._full, session._lend) == doors
    assert session.stats.arena.in_use_bytes == in_use


def test_a_refused_request_does_not_end_a_trace(session):
    with session.trace() as trace:
        with pytest.raises(RequestError):
            session.run({"x": np.zeros((9, 4), np.float32)})
        session.run({"x": X})
    assert [span.name for span in trace.spans].count(RUN) == 1
    assert session.run({"x": X})["y"].shape == (3, 4)


def test_threads_are_told_apart(session):
    with session.trace() as trace:
        threads = [threading.Thread(target=session.run, args=({"x": X},)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    calls = [span for span in trace.spans if span.name == RUN]
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
    check_trace(data)
    assert "node" in {event.get("cat") for event in data["traceEvents"]}
    names = {event["name"] for event in data["traceEvents"]}
    assert {RUN, *PHASES, "arena, bytes", "inside the library"} <= names
    assert data["otherData"]["engine"] == "cpu"


def test_events_are_written_from_the_first_one_on_in_order():
    spans = [Span("b", 5000, 9000, 7), Span("a", 3000, 9500, 7)]
    data = chrome_trace(Traced(spans, [Count("c", 4000, {"bytes": 1})]), {})
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


def calls_of(trace):
    return [span for span in trace.spans if span.name in CALLS]


def written(trace, path):
    trace.write(path)
    return check_trace(json.loads(path.read_text()))


@pytest.mark.parametrize("nodes", [True, False])
def test_every_way_to_call_is_noted(session, nodes, engine_kind):
    with session.trace(nodes=nodes) as trace:
        results = [
            session.run({"x": X}),
            session.run({"x": X}, ["y"]),
            session.run({"x": X}, timeout_s=5.0),
            session.run({"x": X}, cancel=CancelToken()),
        ]
        with session.borrow({"x": X}) as views:
            results.append({"y": views["y"].copy()})
        with session.borrow({"x": X}, ["y"], timeout_s=5.0) as views:
            results.append({"y": views["y"].copy()})
    for found in results:
        np.testing.assert_array_equal(found["y"], 2 * X)
    assert [span.name for span in calls_of(trace)] == [RUN] * 4 + [BORROW] * 2
    assert len(trace.held) == 2
    assert len(trace.nodes) == (6 if nodes and engine_kind == "cpu" else 0), "others have no profiler of nodes"


def test_a_borrow_has_the_parts_of_a_call_but_for_copies_out(session):
    with session.trace() as trace, session.borrow({"x": X}) as views:
        assert views["y"].shape == (3, 4)
    names = [span.name for span in trace.spans]
    assert names == [BORROW, *PHASES[:-1], ENQUEUE, WAIT]
    (call,) = calls_of(trace)
    (held,) = trace.held
    assert call.args["sizes"] == {"batch": 3}
    assert call.end_ns <= held.start_ns <= held.end_ns


def test_a_traced_borrow_keeps_the_promises_of_a_borrow(session):
    with session.trace():
        lent = session.borrow({"x": X})
        with lent as views:
            with pytest.raises(LeaseError, match="open already"):
                lent.__enter__()
            assert list(views) == ["y"]
        with pytest.raises(LeaseError, match="has ended"):
            views["y"]
        with pytest.raises(RequestError, match="unknown"):
            session.borrow({"x": X}, ["z"])
        with pytest.raises(RequestError), session.borrow({"x": X[:, :2]}):
            pass
        lent = session.borrow({"x": X})
        kept = lent.__enter__()["y"]
        with pytest.warns(KeptViewWarning):
            lent.__exit__(None, None, None)
        session.run({"x": -X})
        np.testing.assert_array_equal(kept, 2 * X)


def test_a_cancelled_call_and_unknown_outputs_end_no_trace(session):
    token = CancelToken()
    token.cancel()
    with session.trace() as trace:
        with pytest.raises(CancelledError):
            session.run({"x": X}, cancel=token)
        with pytest.raises(RequestError):
            session.run({"x": X}, ["z"])
        session.run({"x": X}, ["y"])
    assert len(calls_of(trace)) == 1


def test_traffic_is_recorded_while_and_after_a_session_is_traced(session, tmp_path):
    session.record_traffic(tmp_path / "t.jsonl")
    session.run({"x": X})
    with session.trace():
        session.run({"x": X})
        session.run({"x": X}, ["y"])
        with session.borrow({"x": X}):
            pass
    session.run({"x": X})
    session.record_traffic(None)
    counted = [json.loads(line)["count"] for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert sum(counted) == 5


def test_a_trace_of_many_threads_is_sound(open_bundle, mix_model, tmp_path, engine_kind):
    """Runs, borrows inside borrows, and borrows that end in another order, from several threads at once."""
    session = open_bundle(mix_model, profiles=({"batch": (1, 4), "seq": (1, 4)},), slots=6)
    feeds = {spec.name: np.ones((2, 3, 4), np.float32) for spec in session.signature.inputs}

    def work(turns):
        for i in range(turns):
            session.run(feeds)
            first = session.borrow(feeds, timeout_s=30)
            first.__enter__()
            session.run(feeds, timeout_s=30)
            first.__exit__(None, None, None)
            if i % 2:
                session.run(feeds, list(session.run(feeds, timeout_s=30))[:1])

    with session.trace() as trace:
        first, second = session.borrow(feeds), session.borrow(feeds)
        first.__enter__(), second.__enter__()
        first.__exit__(None, None, None), second.__exit__(None, None, None)
        threads = [threading.Thread(target=work, args=(6,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    slices = written(trace, tmp_path / "t.json")
    assert len(slices) >= 3
    calls = [name for found in slices.values() for _, _, name in found if name in CALLS]
    assert (calls.count(RUN), calls.count(BORROW)) == (2 * (6 + 6 + 3 * 2), 2 + 2 * 6)
    if engine_kind != "cpu":
        return  # it has no profiler of nodes
    nodes = {node.name or node.op for node in trace.nodes}
    assert len(trace.nodes) >= len(calls)
    for found in slices.values():
        executed = [(start, end) for start, end, name in found if name in (ENQUEUE, WAIT)]
        mine = [(start, end) for start, end, name in found if name in nodes]
        if executed:
            assert mine
            assert all(any(a <= start and end <= b for a, b in executed) for start, end in mine)


def test_a_trace_of_several_nodes_is_sound(open_bundle, tmp_path):
    """A chain of nodes, and one that holds others: the branches of an If."""
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) {
          s = ReduceSum <keepdims=0> (x)
          zero = Constant <value_float = 0.0> ()
          more = Greater (s, zero)
          a = If (more) <
            then_branch = t () => (float[N,4] b) { c = Exp (x)  d = Tanh (c)  b = Add (d, c) },
            else_branch = e () => (float[N,4] f) { f = Neg (x) }
          >
          h = Relu (a)
          y = Mul (h, h)
        }""")
    session = open_bundle(model, profiles=({"N": (1, 4)},))
    with session.trace() as trace:
        for sign in (1, -1, 1):
            session.run({"x": sign * (X + 1)})
    slices = written(trace, tmp_path / "t.json")
    names = {name for found in slices.values() for _, _, name in found}
    assert {node.op for node in trace.nodes} >= {"Mul", "Exp"}
    assert len(names) > len(PHASES) + 3


def node(start, duration, thread=7):
    return NodeRun(f"n{start}", "Add", start, duration, thread, (), (), 0, 0, 0)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        pytest.param([(900, 300), (1300, 200)], [(1000, 200), (1300, 200)], id="begins-early"),
        pytest.param([(1000, 500), (1800, 400)], [(1000, 500), (1800, 200)], id="ends-late"),
        pytest.param([(1000, 300), (1290, 300)], [(1000, 300), (1300, 290)], id="begins-before-the-last-ended"),
        pytest.param([(1000, 600), (1100, 100), (1210, 395)], [(1000, 600), (1100, 100), (1210, 390)], id="holds-two"),
        pytest.param([(5000, 100)], [(5000, 100)], id="outside-of-every-execution"),
        pytest.param([(1000, 300), (1001, 0), (1300, 0)], [(1000, 300), (1001, 0), (1300, 0)], id="no-time"),
    ],
)
def test_nodes_are_moved_by_what_two_clocks_differ(given, wanted):
    spans = [Span(ENQUEUE, 1000, 2000, 7), Span(WAIT, 2000, 2001, 7), Span(ENQUEUE, 5000, 5050, 8)]
    found = nested([node(*place) for place in given], spans)
    assert [(n.start_ns, n.duration_ns) for n in found] == wanted


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 120), st.integers(1, 2)), max_size=12),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=5),
)
def test_whatever_a_profiler_tells_the_file_is_sound(places, gaps):
    spans, at = [], 0
    for gap, length in gaps:
        start, submitted, at = at + gap, at + gap + length // 2, at + gap + length
        spans += [Span(EXECUTE, start, at, 1), Span(ENQUEUE, start, submitted, 1), Span(WAIT, submitted, at, 1)]
    check_trace(chrome_trace(Traced(spans, nodes=[node(*place) for place in places]), {}))


OUTER = {"name": "a", "ph": "X", "pid": 1, "tid": 2, "ts": 0.0, "dur": 5.0}
NAMED = [
    {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "p"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "t"}},
]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        pytest.param([*NAMED, OUTER, OUTER | {"name": "b", "ts": 3.0}], "lies partly in", id="overlap"),
        pytest.param([*NAMED, OUTER | {"dur": 1.0}, OUTER], "lies partly in", id="outer-after-inner"),
        pytest.param([*NAMED, OUTER | {"dur": -1.0}], "no time", id="negative"),
        pytest.param([*NAMED, {key: value for key, value in OUTER.items() if key != "dur"}], "no time", id="no-dur"),
        pytest.param([*NAMED, OUTER | {"ts": 3.0}, OUTER], "earlier", id="order"),
        pytest.param([NAMED[0], OUTER], "has no name", id="thread-without-a-name"),
        pytest.param([NAMED[1], OUTER], "has no name", id="process-without-a-name"),
        pytest.param([*NAMED, NAMED[1]], "named twice", id="two-names"),
        pytest.param([OUTER | {"tid": "x"}], "pid and tid", id="thread-is-a-number"),
        pytest.param([OUTER | {"ph": "C", "args": {"n": "1"}}], "no number", id="counter-of-texts"),
        pytest.param([OUTER | {"ph": "C", "args": {}}], "without a value", id="counter-of-nothing"),
        pytest.param([OUTER | {"ph": "b", "cat": "c", "id": 1}], "never ended", id="no-end"),
        pytest.param([OUTER | {"ph": "e", "cat": "c", "id": 1}], "begins once", id="no-begin"),
        pytest.param([OUTER | {"ph": "Z"}], "unknown phase", id="phase"),
    ],
)
def test_the_reader_of_these_tests_is_strict(events, message):
    check_trace({"traceEvents": [*NAMED, OUTER, OUTER | {"name": "b", "ts": 1.0, "dur": 4.0}]})
    with pytest.raises(TraceFormatError, match=message):
        check_trace({"traceEvents": events})


def test_leases_may_overlap_as_they_like():
    data = chrome_trace(Traced(held=[Held(0, 50), Held(10, 90), Held(20, 30)]), {})
    check_trace(data)
    found = [event for event in data["traceEvents"] if event["name"] == HELD]
    assert [event["ph"] for event in found] == ["b", "b", "b", "e", "e", "e"]
    assert len({event["id"] for event in found}) == 3


@pytest.mark.parametrize("nodes", [False, True], ids=["own-slots", "copy-of-the-engine"])
def test_calls_of_threads_that_meet_the_end_of_a_trace_are_answered(session, nodes):
    ended, wrong = threading.Event(), []

    def work(i: int) -> None:
        x = np.full((1, 4), i, np.float32)
        while not ended.is_set():
            try:
                wrong.extend(y for y in (session.run({"x": x})["y"],) if not (y == 2 * i).all())
                with session.borrow({"x": x}) as views:
                    wrong.extend(y for y in (views["y"].copy(),) if not (y == 2 * i).all())
            except TrtcError as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=work, args=(i,)) for i in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            with session.trace(nodes=nodes):
                session.run({"x": X})
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_call_that_began_in_a_trace_and_found_it_over_is_answered(session):
    with session.trace():
        run = session._run  # a thread that is about to call this is put off here until the trace is over
    assert np.array_equal(run({"x": X})["y"], 2 * X)
    session.close()
    with pytest.raises(SessionClosedError, match="is closed"):
        run({"x": X})


def test_a_borrow_that_is_made_in_a_trace_may_be_entered_after_it(session):
    with session.trace():
        borrow = session.borrow({"x": X})
    with borrow as views:
        assert np.array_equal(views["y"], 2 * X)
    assert session.stats.lost_leases == 0
    session.close()
    with pytest.raises(SessionClosedError, match="is closed"), borrow:
        pass
