"""Traffic that a session records: which sizes came how often, whatever happens to the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest

from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import HostError, RequestError, UsageError
from trtc.profiles.traffic_files import ReadOptions, read_traffic
from trtc.runtime import SessionClosedError, TrafficWarning, load, traffic_log
from trtc.runtime.traffic_log import TrafficLog

PAIR = Signature(
    (TensorSpec("ids", "int64", ("batch", "seq")), TensorSpec("mask", "int64", ("batch", "seq"))),
    (TensorSpec("out", "float", ("batch",)),),
)


def counts(path):
    """Requests by sizes."""
    found = Counter()
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        found[tuple(entry["sizes"].items())] += entry["count"]
    return found


def feeds(rows, length):
    return {name: np.zeros((rows, length), np.int64) for name in ("ids", "mask")}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "traffic.jsonl"


def test_requests_are_counted_by_the_sizes_of_their_symbols(path):
    log = TrafficLog(path, PAIR)
    for rows, length in [(1, 7), (2, 9), (1, 7)]:
        log.note(feeds(rows, length))
    log.flush()
    assert counts(path) == {(("batch", 1), ("seq", 7)): 2, (("batch", 2), ("seq", 9)): 1}


def test_lists_count_and_what_says_no_sizes_is_lost_but_counted_as_such(path):
    log = TrafficLog(path, PAIR)
    log.note({"ids": [[1, 2, 3]], "mask": [[1, 1, 1]]})
    for odd in ({}, None, {"ids": np.zeros(3)}, {"ids": [[1], [1, 2]]}, feeds(0, 5)):
        log.note(odd)
    log.flush()
    assert counts(path) == {(("batch", 1), ("seq", 3)): 1}
    assert log.lost == 5


def test_the_file_is_what_plans_read(path):
    log = TrafficLog(path, PAIR)
    for rows, length in [(1, 7), (2, 9), (1, 7)]:
        log.note(feeds(rows, length))
    log.flush()
    traffic = read_traffic([path], ReadOptions(symbols=("batch", "seq"))).traffic
    assert traffic.sizes.tolist() == [[1, 7], [2, 9]]
    assert traffic.weights.tolist() == [2, 1]


def test_symbols_on_several_inputs_are_read_from_all_of_them(path):
    signature = Signature((TensorSpec("a", "float", ("n", 4)), TensorSpec("b", "float", ("m",))), ())
    log = TrafficLog(path, signature)
    log.note({"a": np.zeros((2, 4)), "b": np.zeros(5)})
    log.note({"a": np.zeros((2, 3)), "b": np.zeros(5)})
    log.flush()
    assert counts(path) == {(("m", 5), ("n", 2)): 1}
    assert log.lost == 1


def test_a_restart_continues_the_file(path):
    for _ in range(2):
        log = TrafficLog(path, PAIR)
        log.note(feeds(1, 7))
        log.flush()
    assert counts(path) == {(("batch", 1), ("seq", 7)): 2}


def test_half_a_line_that_a_killed_writer_left_is_cut_off(path):
    path.write_text('{"sizes":{"batch":1,"seq":3},"count":4}\n{"sizes":{"ba')
    log = TrafficLog(path, PAIR)
    log.note(feeds(1, 7))
    log.flush()
    assert counts(path) == {(("batch", 1), ("seq", 3)): 4, (("batch", 1), ("seq", 7)): 1}


def test_a_killed_process_leaves_whole_lines_and_loses_only_what_was_not_due(path):
    child = (
        "import os, signal, sys, numpy as np\n"
        "from trtc.runtime import traffic_log as t\n"
        "from trtc.engines.signature import Signature, TensorSpec\n"
        "t.FLUSH_S = 0\n"
        "log = t.TrafficLog(sys.argv[1], Signature((TensorSpec('x', 'float', ('n',)),), ()))\n"
        "for n in range(1, 201):\n    log.note({'x': np.zeros(n)})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", child, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert counts(path) == {(("n", n),): 1 for n in range(1, 201)}


def test_several_logs_and_threads_share_one_file_without_losing_a_request(path, monkeypatch):
    monkeypatch.setattr(traffic_log, "FLUSH_S", 0)
    monkeypatch.setattr(traffic_log, "MERGE_BYTES", 2_000)
    logs = [TrafficLog(path, PAIR) for _ in range(2)]

    def work(log, seed):
        for i in range(150):
            log.note(feeds(1 + seed % 2, 1 + i % 9))

    threads = [threading.Thread(target=work, args=(logs[i % 2], i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log.flush()
    assert sum(counts(path).values()) == 600
    assert len(counts(path)) == 18
    assert path.stat().st_size < 5_000
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_link_to_the_file_stays_one_when_its_lines_are_joined(path, tmp_path, monkeypatch):
    monkeypatch.setattr(traffic_log, "MERGE_BYTES", 10)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    for _ in range(3):
        log = TrafficLog(link, PAIR)
        log.note(feeds(1, 2))
        log.flush()
    assert link.is_symlink()
    assert sum(counts(path).values()) == 3


def test_a_file_with_lines_of_somebody_else_is_only_appended_to(path, monkeypatch):
    monkeypatch.setattr(traffic_log, "MERGE_BYTES", 10)
    theirs = '{"sizes":{"batch":1,"seq":1},"count":1,"tag":"mine"}\n' * 3
    path.write_text(theirs)
    log = TrafficLog(path, PAIR)
    log.note(feeds(1, 2))
    log.flush()
    assert path.read_text().startswith(theirs)
    assert counts(path)[("batch", 1), ("seq", 2)] == 1


def test_memory_is_bounded_when_every_request_has_another_size(path, monkeypatch):
    monkeypatch.setattr(traffic_log, "MAX_SHAPES", 16)
    log = TrafficLog(path, PAIR)
    for i in range(100):
        log.note(feeds(1, 1 + i))
        assert len(log._counts) <= 16
    log.flush()
    assert sum(counts(path).values()) == 100
    assert log.lost == 0


def test_a_disk_that_takes_nothing_warns_once_and_what_was_counted_comes_later(path, monkeypatch):
    log = TrafficLog(path, PAIR)
    log.note(feeds(1, 7))

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(traffic_log.os, "write", full)
        with pytest.warns(TrafficWarning, match=r"traffic\.jsonl: traffic cannot be written now: No space left"):
            log.flush()
        log.flush()
    log.flush()
    assert counts(path) == {(("batch", 1), ("seq", 7)): 1}


def test_places_that_hold_no_file_are_refused_at_once(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        TrafficLog(tmp_path, PAIR)
    with pytest.raises(HostError, match="cannot be written there"):
        TrafficLog(tmp_path / "missing" / "t.jsonl", PAIR)
    with pytest.raises(UsageError, match="one size only"):
        TrafficLog(tmp_path / "t.jsonl", Signature((TensorSpec("x", "float", (3,)),), ()))


def test_a_forked_child_does_not_write_the_counts_of_its_parent(path):
    log = TrafficLog(path, PAIR)
    log.note(feeds(1, 7))
    log._process = os.getppid()  # as the child sees it
    log.flush()
    assert path.read_text() == ""


def test_a_session_counts_run_and_borrow_and_what_it_refused(open_bundle, double_model, path):
    session = open_bundle(double_model, profiles=({"batch": (1, 4)},), mode="bucket")
    x = np.ones((2, 4), np.float32)
    session.run({"x": x})
    session.record_traffic(path)
    session.run({"x": x})
    session.run({"x": x}, ["y"])
    with session.borrow({"x": x}):
        pass
    with pytest.raises(RequestError):
        session.run({"x": np.ones((9, 4), np.float32)})
    session.record_traffic(None)
    session.run({"x": x})
    assert counts(path) == {(("batch", 2),): 3, (("batch", 9),): 1}


def test_closing_and_dropping_a_session_write_what_was_counted(make_bundle, double_model, path):
    bundle = make_bundle(double_model, profiles=({"batch": (1, 4)},))
    with load(bundle) as session:
        session.record_traffic(path)
        session.run({"x": np.ones((2, 4), np.float32)})
    assert sum(counts(path).values()) == 1
    with pytest.raises(SessionClosedError):
        session.record_traffic(path)
    dropped = load(bundle)
    dropped.record_traffic(path)
    dropped.run({"x": np.ones((3, 4), np.float32)})
    del dropped
    assert sum(counts(path).values()) == 2


def test_recording_leaves_nothing_on_the_path_of_a_call_when_it_is_off(open_bundle, double_model, path):
    session = open_bundle(double_model, profiles=({"batch": (1, 8)},))
    before = session._run
    session.record_traffic(path)
    assert session._run is not before
    session.record_traffic(None)
    assert session._run is before
