"""Measuring: a benchmark that times something else than users get, or says more than it knows.

These cases run on the CPU. The same on a GPU, whose first call of a shape also records a graph, has not run yet.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from trtc.engines.onnxruntime.load import OnnxRuntimeEngine
from trtc.tools.bench import run
from trtc.tools.bench.clock import MonotonicClock
from trtc.tools.bench.conditions import Moment

DOUBLE = "g (float[N,M] x) => (float[N,M] y) { y = Add (x, x) }"
CALL_S, FIRST_S = 0.001, 0.05
BRIEF = ("--iterations", "40", "--duration", "0", "--warm-up", "0")
ONE = ("--sizes", "N=3,M=4")


@dataclass
class Machine:
    """A machine whose clock moves while an engine runs, and not otherwise: 1 ms a call, and 50 ms for a new shape.

    Attributes:
        s: what its clock shows.
        spread: share by which calls differ, from call to call.
        shapes: every shape that an engine was called with, in order.
    """

    s: float = 100.0
    spread: float = 0.0
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    seen: set[object] = field(default_factory=set)
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def now_s(self) -> float:
        return self.s

    def wait_until_s(self, moment_s: float) -> None:
        self.s = max(self.s, moment_s)

    def passes(self, engine: object, shape: tuple[int, ...]) -> None:
        self.shapes.append(shape)
        self.s += CALL_S * (1 + self.spread * self.noise.uniform(-1, 1))
        if (engine, shape) not in self.seen:
            self.seen.add((engine, shape))
            self.s += FIRST_S


@dataclass
class SlowAtFirst:
    """A call that takes as long as the machine says."""

    machine: Machine
    engine: object
    shape: tuple[int, ...]
    call: object

    def enqueue(self):
        self.machine.passes(self.engine, self.shape)
        self.call.enqueue()

    def wait(self):
        return self.call.wait()

    def cancel(self):
        self.call.cancel()


@pytest.fixture
def machine(monkeypatch):
    machine, bind = Machine(), OnnxRuntimeEngine._bound

    def bound(engine, opened, bucket, slot):
        return SlowAtFirst(machine, engine, bucket.inputs["x"].shape, bind(engine, opened, bucket, slot))

    monkeypatch.setattr(OnnxRuntimeEngine, "_bound", bound)
    monkeypatch.setattr(run, "MonotonicClock", lambda: machine)
    monkeypatch.setattr(run, "read_moment", lambda: Moment(None, None, None, 0.0, None))  # nothing else runs on it
    return machine


@pytest.fixture
def two_sizes(tmp_path):
    """Traffic of two sizes, as often as each other."""
    path = tmp_path / "traffic.jsonl"
    path.write_text("".join(json.dumps({"sizes": {"N": n, "M": 4}, "count": 20}) + "\n" for n in (2, 5)))
    return path


@pytest.fixture
def bench(trtc, build):
    """Measure a bundle, and return the report."""
    path = build(DOUBLE).path

    def say(*words):
        said = trtc("bench", path, *words, "-q", "--json")
        assert said.code == 0, said.err
        return json.loads(said.out)

    say.path = path
    return say


@pytest.mark.case("The first call of each shape is slow, and a mean hides it or carries it")
def test_first_calls_stand_apart_from_the_figures(bench, machine, two_sizes):
    """Every shape is warmed up: no figure of a warm call shows the 50 ms of a first one, and each is reported."""
    (case,) = bench("--traffic", two_sizes, *BRIEF)["cases"]
    latency = case["latency"]
    for figure in (latency["median_s"], latency["max_s"], *latency["percentiles_s"].values()):
        assert figure == pytest.approx(CALL_S)
    assert latency["mean_s"] == pytest.approx(CALL_S)
    assert latency["spread"] == pytest.approx(0, abs=1e-9)
    for size in case["sizes"]:
        assert size["first_call_s"] == pytest.approx(FIRST_S + CALL_S)
        assert size["latency"]["median_s"] == pytest.approx(CALL_S)
    assert len(machine.seen) == 2


@pytest.mark.case("Sizes that nobody stated become 1")
def test_the_shapes_that_ran_are_those_that_are_reported(bench, machine, two_sizes, trtc):
    """The engine is called with the stated shapes only, the report names them, and sizes left out are asked for."""
    (case,) = bench("--traffic", two_sizes, *BRIEF)["cases"]
    assert [size["sizes"] for size in case["sizes"]] == [{"N": 2, "M": 4}, {"N": 5, "M": 4}]
    assert set(machine.shapes) == {(2, 4), (5, 4)}
    assert sum(size["latency"]["count"] for size in case["sizes"]) == case["latency"]["count"] == 40
    ran = len(machine.shapes)
    said = trtc("bench", bench.path, "--sizes", "N=2")
    assert said.code == 2
    assert "no size for M" in said.err
    assert len(machine.shapes) == ran


@pytest.mark.case("Nothing is measured, or next to nothing")
def test_one_call_is_one_call_and_none_is_refused(bench, machine, trtc):
    """One iteration is reported as a count of 1, every percentile that call; 0 is wrong use, and nothing runs."""
    few = ("--iterations", "1", "--duration", "0", "--warm-up", "0")
    latency = bench(*ONE, *few)["cases"][0]["latency"]
    assert latency["count"] == 1
    assert all(figure == pytest.approx(CALL_S) for figure in (latency["median_s"], *latency["percentiles_s"].values()))
    ran = len(machine.shapes)
    said = trtc("bench", bench.path, *ONE, "--iterations", "0")
    assert (said.code, said.out) == (2, "")
    assert "0 is not in the range" in said.err
    assert len(machine.shapes) == ran


@pytest.mark.case("The same thing measured twice is called faster")
def test_a_difference_within_the_noise_is_no_result(bench, machine):
    """A bundle beside itself is within the noise, also where single calls differ by a third; the interval holds 1."""
    machine.spread = 1 / 3
    peer = bench(*ONE, *BRIEF, "--vs", bench.path)["cases"][0]["peer"]
    ratio = peer["ratio"]
    assert ratio["verdict"] == "noise"
    assert ratio["low"] <= 1 <= ratio["high"]
    assert ratio["low"] < ratio["high"]
    assert peer["agrees"]


@pytest.mark.case("A real difference drowns in the same noise")
def test_a_difference_beyond_the_noise_is_told(bench, machine, monkeypatch):
    """Where the other side takes twice as long in each call, the ratio is a half and its interval excludes 1."""
    machine.spread = 1 / 3
    passes, first = Machine.passes, []

    def slower(self, engine, shape):
        first.append(engine)
        passes(self, engine, shape)
        if engine is not first[0]:  # that of the peer
            self.s += CALL_S

    monkeypatch.setattr(Machine, "passes", slower)
    ratio = bench(*ONE, *BRIEF, "--vs", bench.path)["cases"][0]["peer"]["ratio"]
    assert ratio["verdict"] == "faster"
    assert ratio["high"] < 1
    assert ratio["ratio"] == pytest.approx(0.5, rel=0.15)


@pytest.mark.case("The clock is set while something is measured")
def test_the_clock_of_measurements_never_goes_back(bench, monkeypatch):
    """A wall clock that is set back at every look changes no figure: times come from a monotonic clock."""
    set_back = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(set_back)))
    latency = bench(*ONE, *BRIEF)["cases"][0]["latency"]
    assert 0 < latency["min_s"] <= latency["median_s"] <= latency["max_s"] < 60
    assert MonotonicClock.now_s is time.perf_counter
    assert time.get_clock_info("perf_counter").monotonic


@pytest.mark.case("Copies are in a figure, or are not, and nobody says so")
def test_copies_have_figures_of_their_own(bench):
    """The report says that copies are in a latency, and holds a median each for copies in, the run, and copies out."""
    report = bench(*ONE, *BRIEF)
    assert report["transfers"] == "copies of inputs into planned memory and of outputs out of it are in"
    parts = report["cases"][0]["parts"]
    assert {"copy in", "execute", "copy out"} <= parts.keys()
    assert all(parts[name] > 0 for name in ("copy in", "execute", "copy out"))
