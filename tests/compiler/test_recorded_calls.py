"""What calls took in the program that recorded them: read from its record for one model, and part of a build's key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import onnx
import pytest

from trtc.compiler import BuildOptions, PlanOptions
from trtc.compiler.analysis import read_declarations
from trtc.compiler.importer import load_model
from trtc.compiler.pipeline import build_key
from trtc.compiler.recorded_times import MOST_SHAPES, recorded_times

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MINE, OTHER = "a" * 64, "b" * 64


def call(rows: int, count: int, seconds: float, **more: Any) -> dict[str, Any]:
    return {"model": MINE, "name": "m", "inputs": {"x": [rows, 3]}, "count": count, "seconds": seconds, **more}


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Path]:
    """Write entries, or texts as they are, one a line."""

    def write(*lines: Any) -> Path:
        path = tmp_path / "r.jsonl"
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return path

    return write


def found(path: Path) -> list[tuple[dict[str, tuple[int, ...]], int, float]]:
    return [(calls.inputs, calls.count, calls.seconds) for calls in recorded_times([path], MINE)]


def test_calls_of_equal_shapes_are_summed_and_those_of_other_models_left_out(record):
    path = record(call(2, 3, 0.5), call(5, 1, 0.25), call(2, 1, 0.5), {**call(2, 9, 9.0), "model": OTHER})
    assert found(path) == [({"x": (2, 3)}, 4, 1.0), ({"x": (5, 3)}, 1, 0.25)]


def test_calls_without_a_time_count_as_none(record):
    """A bundle answered them: what it took is no time of ONNX Runtime."""
    assert found(record(call(2, 3, 0.0, timed=0), call(5, 4, 0.5, timed=1))) == [({"x": (5, 3)}, 1, 0.5)]


@pytest.mark.parametrize("line", [
    "", "nothing", MINE, f'["{MINE}"]', '{"model": "' + MINE, json.dumps({"model": MINE}),
    json.dumps({"model": MINE, "ranges": {"x": [0, 1]}, "sampled": 3}),
    json.dumps(call(2, 1, 1.0) | {"inputs": [2, 3]}), json.dumps(call(2, 1, 1.0) | {"inputs": {"x": 2}}),
    json.dumps(call(2, 1, 1.0) | {"inputs": {"x": ["two"]}}), json.dumps(call(2, 1, 1.0) | {"count": None}),
    json.dumps(call(2, 1, float("nan"))), json.dumps(call(2, 1, float("inf"))), json.dumps(call(2, -1, 1.0)),
])  # fmt: skip
def test_a_line_that_says_nothing_is_passed_over(record, line):
    assert found(record(line, call(2, 1, 0.5))) == [({"x": (2, 3)}, 1, 0.5)]


def test_the_shapes_with_most_calls_are_kept(record):
    kept = found(record(*(call(rows, rows, 1.0) for rows in range(1, MOST_SHAPES + 10))))
    assert [count for _, count, _ in kept] == list(range(MOST_SHAPES + 9, 9, -1))


def test_other_files_than_records_say_nothing(record, tmp_path):
    path = record(call(2, 1, 0.5))
    assert recorded_times([path.rename(tmp_path / "r.csv"), tmp_path / "none.jsonl", tmp_path], MINE) == ()


def test_another_record_of_the_same_sizes_is_another_build(record, tiny_model, tmp_path):
    """Or the cache would give a bundle that compares with what calls took at another time, or on another machine."""
    onnx.save(tiny_model("rows", 3), tmp_path / "m.onnx")
    model = load_model(tmp_path / "m.onnx", work_folder=tmp_path / "model")

    def key(seconds: float) -> str:
        path = record({**call(2, 3, seconds), "model": model.file_sha256, "times_s": []})
        options = BuildOptions(plan=PlanOptions(traffic=(path,)))
        return build_key(model, read_declarations(model, options), options)

    assert key(0.5) == key(0.5) != key(0.25)
