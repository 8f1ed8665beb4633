"""What a record holds, how it stays small, and that a bundle's data files are part of its model's identity."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from trtc.compiler import BuildOptions, build
from trtc.profiles import UsageError
from trtc.profiles.recorded import samples_folder
from trtc.profiles.traffic_files import ReadOptions, read_traffic
from trtc.runtime.compat import journal, session_class_for
from trtc.runtime.compat.counts import MAX_REASON, MAX_REASONS, MAX_SHAPES, MAX_TIMES
from trtc.runtime.compat.desk import Desk
from trtc.runtime.compat.record_lines import MOST_TIMES, line_of, merged
from trtc.runtime.compat.samples import MAX_SAMPLE_BYTES, Sampler
from trtc.runtime.compat.settings import Settings

CALLS = st.fixed_dictionaries({
    "model": st.sampled_from(["a" * 64, "b" * 64]), "name": st.just("m.onnx"),
    "inputs": st.fixed_dictionaries({"x": st.lists(st.integers(1, 3), min_size=1, max_size=2)}),
    "count": st.integers(1, 9), "seconds": st.just(0.5), "times_s": st.lists(st.floats(0, 9), max_size=1),
})  # fmt: skip
RANGES = st.builds(
    lambda low, high: {"model": "a" * 64, "name": "m.onnx", "ranges": {"x": [low, high]}, "sampled": 1},
    st.floats(-5, 0), st.floats(0, 5),
)  # fmt: skip


def test_joined_calls_know_how_many_of_them_were_timed():
    call = {"model": "a" * 64, "name": "m", "inputs": {"x": [1]}, "count": 3, "seconds": 0.5, "times_s": []}
    served = {**call, "count": 2, "seconds": 0.0, "timed": 0}
    for order in ([call, served, call], [served, call, call], [call, call, served]):
        [line] = merged(line_of(entry).encode() for entry in order) or []
        joined = json.loads(line)
        assert (joined["count"], joined["timed"], joined["seconds"]) == (8, 6, 1.0)
    [line] = merged([line_of(call).encode()]) or []
    assert "timed" not in json.loads(line)


def totals(lines: list[str]) -> dict[str, Any]:
    calls: Counter[str] = Counter()
    low, high, sampled = 0.0, 0.0, 0
    for entry in map(json.loads, lines):
        if "inputs" in entry:
            calls[entry["model"] + str(entry["inputs"])] += entry["count"]
        else:
            low, high = min(low, entry["ranges"]["x"][0]), max(high, entry["ranges"]["x"][1])
            sampled += entry["sampled"]
    return {"calls": calls, "low": low, "high": high, "sampled": sampled}


@given(st.lists(CALLS | RANGES))
def test_a_record_that_is_made_shorter_says_the_same(entries):
    lines = [line_of(entry) for entry in entries]
    short = merged(line.encode() for line in lines)
    assert short is not None
    assert totals(short) == totals(lines)
    assert len(short) <= len(totals(lines)["calls"]) + 1
    assert merged(line.encode() for line in short) == short


def test_arrival_times_are_thinned_evenly():
    entry = {"model": "a", "name": "m", "inputs": {"x": [1]}, "count": MOST_TIMES, "seconds": 1.0}
    lines = [line_of({**entry, "times_s": [float(k) for k in range(i, 3 * MOST_TIMES, 3)]}).encode() for i in range(3)]
    [short] = merged(lines) or []
    kept = json.loads(short)["times_s"]
    assert kept == [float(k) for k in range(0, 3 * MOST_TIMES, 4)]


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"seq": 3}\n', b"[1]\n", b'{"inputs": 3}\n'])
def test_a_record_with_lines_of_somebody_else_is_left_as_it_is(line, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "MERGE_BYTES", 0)
    path = tmp_path / "r.jsonl"
    path.write_bytes(line)
    journal.Record(path).append([{"model": "a", "name": "m", "ranges": {}, "sampled": 1}])
    assert path.read_bytes().startswith(line)
    assert path.read_bytes().count(b"\n") == 2


def test_a_link_to_a_record_stays_one_when_the_record_is_made_shorter(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "MERGE_BYTES", 0)
    (tmp_path / "elsewhere").mkdir()
    place, link = tmp_path / "elsewhere" / "r.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(place)
    entry = {"model": "a", "name": "m", "inputs": {"x": [1]}, "count": 1, "seconds": 0.1, "times_s": []}
    for _ in range(3):
        journal.Record(link).append([entry])
    assert link.is_symlink()
    assert sum(json.loads(line)["count"] for line in place.read_text().splitlines()) == 3
    assert [path.name for path in place.parent.iterdir()] == ["r.jsonl"]


def test_a_record_grows_no_further_when_it_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "MERGE_BYTES", 0)
    monkeypatch.setattr(journal, "MAX_RECORD_BYTES", 10)
    record = journal.Record(tmp_path / "r.jsonl")
    entry = {"model": "a", "name": "m", "inputs": {"x": [1]}, "count": 1, "seconds": 0.1, "times_s": []}
    record.append([entry])
    with pytest.raises(OSError, match="are the most"):
        record.append([entry])


def desk_of(tmp_path: Path, **settings: Any) -> tuple[Desk, Any]:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"any bytes")
    report = tmp_path / "report.jsonl"
    report.touch()
    desk = Desk(Settings(record=str(tmp_path / "r.jsonl"), report=str(report), **settings))
    return desk, desk.model(model)


def test_memory_is_bounded_whatever_comes(tmp_path):
    _, counts = desk_of(tmp_path, values=False)
    counts.due_s = float("inf")
    for i in range(MAX_SHAPES + 50):
        counts.note(("x",), ((i,),), 0.0, {})
        counts.fell_through("run", f"reason {i}")
    for _ in range(MAX_TIMES):
        counts.note(("x",), ((0,),), 0.0, {})
    calls, report = counts.drain()
    assert len(calls) == MAX_SHAPES
    assert sum(len(entry["times_s"]) for entry in calls) == MAX_TIMES
    assert sum(entry["count"] for entry in calls) == MAX_SHAPES + MAX_TIMES
    assert [entry["lost"] for entry in report if "lost" in entry] == [50]
    reasons = [entry for entry in report if "reason" in entry]
    assert len(reasons) == MAX_REASONS + 1
    assert sum(entry["count"] for entry in reasons) == MAX_SHAPES + 50


@pytest.mark.parametrize(("reason", "kept"), [
    pytest.param("word " * 199 + "1234.", "word " * 199 + "1234.", id="all-that-fits"),
    pytest.param("word " * 300, "word " * 198 + "word ...", id="cut-at-a-word"),
    pytest.param("x" * 1001, "x" * 996 + " ...", id="one-long-word"),
])  # fmt: skip
def test_a_long_reason_is_cut_at_a_word_and_says_so(tmp_path, reason, kept):
    _, counts = desk_of(tmp_path, values=False)
    counts.due_s = float("inf")
    counts.fell_through("run", reason)
    [entry] = [entry for entry in counts.drain()[1] if "reason" in entry]
    assert entry["reason"] == kept
    assert len(kept) <= MAX_REASON == 1000


def test_a_record_that_becomes_unwritable_is_noted_once_and_nothing_is_raised(tmp_path):
    desk, counts = desk_of(tmp_path, values=False)
    (tmp_path / "r.jsonl").mkdir()
    for _ in range(3):
        counts.due_s = 0.0
        counts.note(("x",), ((1,),), 0.0, {})
        desk.write(wait=True)
    entries = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    [note] = [entry["note"] for entry in entries if "note" in entry]
    assert "traffic cannot be written there" in note


def test_each_call_has_the_same_chance_to_be_kept(tmp_path):
    kept: Counter[int] = Counter()
    for round_ in range(60):
        sampler = Sampler(tmp_path / str(round_), 4)
        sampler._random.seed(round_)
        for i in range(40):
            if sampler.wants():
                sampler.take({"x": np.array([i])})
        for path in (tmp_path / str(round_)).glob("*.npz"):
            with np.load(path) as sample:
                kept[int(sample["x"][0])] += 1
    assert sum(kept.values()) == 240
    # 60 of 240 are expected in each quarter; the seeds are fixed.
    quarters = [sum(kept[i] for i in range(start, start + 10)) for start in (0, 10, 20, 30)]
    assert all(40 <= count <= 80 for count in quarters), quarters


def test_feeds_that_are_too_large_odd_or_nothing_are_no_error(tmp_path):
    sampler = Sampler(tmp_path / "s", 8)
    sampler.take({"x": np.zeros(MAX_SAMPLE_BYTES // 8 + 1)})
    sampler.take({"x": np.array(["a", "b"], object)})
    sampler.take({"x": np.array([np.nan, 1.0])})
    sampler.take({"x": object()})
    sampler.take({"x": np.zeros((0, 3))})
    assert sorted(path.name for path in (tmp_path / "s").glob("*.npz")) >= ["0001.npz", "0002.npz"]
    ranges, sampled = sampler.drain()
    assert ranges["x"] == (0.0, 1.0)
    assert sampled >= 3


@pytest.mark.parametrize(("value", "ranges"), [
    pytest.param(np.full(3, np.nan, np.float32), {}, id="only-nan"),
    pytest.param(np.array([np.nan, -2.0, 3.0]), {"x": (-2.0, 3.0)}, id="some-nan"),
    pytest.param(np.array([np.inf, 1.0]), {}, id="infinite"),
    pytest.param(np.array([True, False]), {"x": (0.0, 1.0)}, id="flags"),
    pytest.param(np.array([[1.0, 6e4]], np.float16), {"x": (1.0, 60000.0)}, id="half"),
    pytest.param([1e300, 2.0], {}, id="a-list-that-overflows"),
])  # fmt: skip
def test_values_of_all_kinds_are_looked_at_without_a_warning(tmp_path, value, ranges):
    sampler = Sampler(tmp_path, 8)
    sampler.types["x"] = "tensor(float)"
    sampler.take({"x": value})  # warnings are errors in these tests
    assert (sampler.drain(), sampler.failure) == ((ranges, 1), "")


def test_a_mapping_that_breaks_when_it_is_looked_at_is_no_error_of_the_program(tmp_path):
    class Breaks(dict):
        def items(self):
            raise SystemError("broken")

    sampler = Sampler(tmp_path, 8)
    sampler.take(Breaks(x=np.ones(3)))
    assert "broken" in sampler.failure


def recorded(tmp_path: Path, *lines: dict[str, Any]) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


CALL = {"model": "a" * 64, "name": "m", "inputs": {"x": [2, 3]}, "count": 3, "seconds": 0.1, "times_s": [1.5]}
READ = ReadOptions(symbols=("n", "seq"), model="a" * 64, input_dims={"x": ("n", "seq")})


def test_the_lines_of_one_model_become_sizes(tmp_path):
    other = {**CALL, "model": "b" * 64, "inputs": {"y": [7]}}
    ranges = {"model": "a" * 64, "name": "m", "ranges": {"x": [0, 1]}, "sampled": 1}
    nothing = {**CALL, "inputs": {"x": [0, 3]}}
    traffic = read_traffic([recorded(tmp_path, CALL, other, ranges, nothing)], READ).traffic
    assert (traffic.symbols, traffic.sizes.tolist(), traffic.weights.tolist()) == (("n", "seq"), [[2, 3]], [3.0])
    assert traffic.requests == 3
    assert traffic.arrivals is not None
    assert traffic.arrivals.times_s.tolist() == [1.5]


@pytest.mark.parametrize("edited", [
    pytest.param({"count": 0}, id="no-count"), pytest.param({"count": "3"}, id="count-as-text"),
    pytest.param({"times_s": [1, 2, 3, 4]}, id="more-times-than-calls"), pytest.param({"inputs": []}, id="no-inputs"),
    pytest.param({"inputs": {"x": [2]}}, id="rank"), pytest.param({"inputs": {"x": [2, "3"]}}, id="size-as-text"),
    pytest.param({"model": "b" * 64}, id="another-model"),
])  # fmt: skip
def test_a_record_that_does_not_fit_is_refused(tmp_path, edited):
    with pytest.raises(UsageError, match=r"t\.jsonl"):
        read_traffic([recorded(tmp_path, {**CALL, **edited})], READ)


def test_samples_lie_beside_the_record():
    assert samples_folder(Path("a/t.jsonl"), "ab" * 32) == Path("a/t.jsonl.samples") / ("ab" * 8)


@pytest.fixture(scope="module")
def with_data(tmp_path_factory):
    """A model whose weights lie in a file beside it, and its bundle."""
    folder = tmp_path_factory.mktemp("external")
    weights = numpy_helper.from_array(np.arange(600, dtype=np.float32).reshape(3, 200), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 200])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    external_data_helper.convert_model_to_external_data(model, location="w.bin", size_threshold=0)
    onnx.save(model, folder / "m.onnx")
    build(folder / "m.onnx", folder / "m.trtc", BuildOptions(measure_s=0, verify_s=1, use_cache=False))
    return folder


def test_weights_beside_the_model_are_part_of_what_it_is(with_data, tmp_path, through):
    kind = session_class_for(with_data / "m.trtc")
    x = np.ones((2, 3), np.float32)
    session = kind(str(with_data / "m.onnx"))
    right = session.run(None, {"x": x})[0]
    assert "_sess" not in session.__dict__
    for name in ("m.onnx", "w.bin"):
        (tmp_path / name).write_bytes((with_data / name).read_bytes())
    data = np.fromfile(tmp_path / "w.bin", np.float32)
    data[0] += 1
    data.tofile(tmp_path / "w.bin")
    other = kind(os.fspath(tmp_path / "m.onnx"))
    assert "_sess" in other.__dict__
    assert "not those that the bundle was built from" in through(other)[0][1]
    assert other.run(None, {"x": x})[0][0, 0] == right[0, 0] + 1
