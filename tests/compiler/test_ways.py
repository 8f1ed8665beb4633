"""Choosing how to run, on engines whose speed is made up."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from trtc.compiler.options import Silent
from trtc.compiler.replay import Caller, Request, drive
from trtc.compiler.timing import calls_per_s
from trtc.compiler.ways import Race, Way, chosen, race
from trtc.compiler.workload import requests_in, thinned, workload_of
from trtc.engines.errors import EngineError
from trtc.profiles import PadRule
from trtc.profiles.traffic import traffic_from_rows

RULE = PadRule("seq", "right", {"x": 0})


class Engine:
    """Adds up its input; a call is as slow as a function of its size and threads says."""

    def __init__(self, threads, work_s, lock):
        self.threads, self.work_s, self.lock, self.seen, self.waited = threads, work_s, lock, [], []

    def prepare(self, layout, slot):
        return Call(self, layout, slot)

    def close(self):
        pass


class Call:
    def __init__(self, engine, layout, slot):
        self.engine, self.layout, self.slot = engine, layout, slot

    def enqueue(self):
        size = self.layout.sizes["seq"]
        self.engine.seen.append(size)
        if size == 13:
            raise EngineError("13 is refused")
        seconds = 10 * self.engine.work_s(size, self.engine.threads)  # long beside what a busy machine takes away
        end = time.perf_counter() + seconds
        with self.engine.lock:  # one processor: calls at once gain nothing
            while time.perf_counter() < end:
                pass

    def wait(self):
        self.engine.waited.append(self.layout.sizes["seq"])
        return {}


@pytest.fixture
def course(small_case, ladder_of):
    """A race over ``seq`` up to 8 and 16, on engines of the given speed."""
    from onnx import helper

    ladder = ladder_of({"seq": (1, 8)}, {"seq": (1, 16)})
    case = small_case(
        [helper.make_node("Identity", ["x"], ["y"])],
        {"x": ("float", ("seq",))},
        {"y": ("float", ("seq",))},
        ladder=ladder,
    )

    def make(work_s, sizes):
        lock = threading.Lock()
        return Race(
            lambda threads, *, spinning=True: Engine(threads, work_s, lock),  # noqa: ARG005
            case.subject,
            (RULE,),
            [{"seq": n} for n in sizes],
            2,
        )

    return make


def test_the_mode_that_serves_the_requests_faster_wins(course):
    """Sizes that are a multiple of 8 run fast: padding pays."""
    ways = [Way(1, 1, "exact"), Way(1, 1, "bucket")]
    fast_padded = race(course(lambda n, _: 2e-4 if n % 8 == 0 else 1e-3, [3, 5, 11]), ways, 0.05)
    assert fast_padded.best.mode == "bucket"
    fast_exact = race(course(lambda n, _: 2e-3 if n % 8 == 0 else 2e-4, [3, 5, 11]), ways, 0.05)
    assert fast_exact.best.mode == "exact"
    assert fast_exact.best_of("bucket") == Way(1, 1, "bucket")


def test_a_slow_model_is_compared_on_few_requests_that_keep_the_shares(course, monkeypatch):
    ways = [Way(1, 1, "exact"), Way(1, 2, "exact")]
    sizes = [1, 2] * 8 + [14, 15] * 4
    all_of_them = race(course(lambda *_: 0.0, sizes), ways, 0.05)
    monkeypatch.setattr("trtc.compiler.ways._PATIENCE_S", 1e-9)
    few = race(course(lambda *_: 0.0, sizes), ways, 1e-9)
    assert (all_of_them.requests, few.requests) == (24, 4)
    assert [size["seq"] for size in thinned([{"seq": n} for n in sizes], 6)] == [1, 2, 1, 2, 14, 15]  # as they came
    with_callers = race(course(lambda *_: 0.0, sizes), [Way(5, 1, "exact")], 1e-9)
    assert with_callers.requests == 10


def test_threads_that_help_are_chosen(course):
    ways = [Way(2, 1, "exact"), Way(1, 2, "exact")]
    found = race(course(lambda _, threads: 2e-3 / threads**2, [3, 5, 11]), ways, 0.05)
    assert found.best == Way(1, 2, "exact")


def test_the_lone_call_of_a_way_that_was_dropped_is_known_all_the_same(course):
    """What a lone caller would gain is told, so it is measured where it loses on throughput, too."""
    ways = [Way(1, 1, "exact"), Way(1, 2, "exact")]
    found = race(course(lambda _, threads: 1e-4 if threads == 1 else 1e-3, [3, 5]), ways, 0.05)
    assert set(found.lone_s) == set(ways)


class Heard(Silent):
    """Keeps what it is told."""

    def __init__(self):
        self.details, self.seconds = [], []

    def detail(self, text):
        self.details.append(text)

    def ahead(self, seconds):
        self.seconds.append(seconds)


def test_a_race_tells_how_far_it_is_and_how_long_it_will_take(course, monkeypatch):
    monkeypatch.setattr("trtc.compiler.replay._TOLD_EVERY_S", 0.0)
    heard = Heard()
    run = replace(course(lambda *_: 0.0, [3, 5, 5, 11]), progress=heard)
    race(run, [Way(2, 1, "exact"), Way(1, 2, "exact")], 30e-3)
    warming = [text for text in heard.details if text.endswith("to warm up")]
    assert warming == [f"{i} of 9 requests to warm up" for i in range(1, 10)]  # three sizes in three slots
    assert "round 2, run 1" in heard.details
    assert heard.details[-1] == "lone calls, run 8"  # four requests in each of two ways
    (expected_s,) = heard.seconds
    assert expected_s >= 30e-3


def rounds(best, noise=0.0):
    return [best * (1 - noise), best, best * (1 - noise)]


def test_ways_that_are_alike_are_told_apart_by_the_time_of_a_lone_call():
    a, b, slow = Way(2, 1, "exact"), Way(1, 2, "exact"), Way(1, 1, "exact")
    lone_s = {a: 2.0, b: 1.0, slow: 0.5}
    assert chosen({a: rounds(100.0), b: rounds(99.0), slow: rounds(97.0)}, lone_s, 2) == b


def test_within_the_noise_exact_sizes_go_before_padded_ones_and_no_processor_is_asked_for_twice():
    exact, crowded, padded = Way(2, 1, "exact"), Way(2, 2, "exact"), Way(1, 2, "bucket")
    lone_s = {exact: 2.0, crowded: 1.0, padded: 1.0}
    noisy = {exact: rounds(95.0, 0.2), crowded: rounds(97.0, 0.2), padded: rounds(100.0, 0.2)}
    assert chosen(noisy, lone_s, 2) == exact
    quiet = {exact: rounds(95.0), crowded: rounds(97.0), padded: rounds(100.0)}
    assert chosen(quiet, lone_s, 2) == padded


def test_noise_never_hides_a_difference_of_more_than_a_tenth():
    exact, padded = Way(2, 1, "exact"), Way(2, 1, "bucket")
    assert chosen({exact: rounds(85.0, 0.5), padded: rounds(100.0, 0.5)}, {exact: 1.0, padded: 1.0}, 2) == padded


def test_one_slow_round_does_not_cost_a_way_its_place():
    steady, fast = Way(2, 1, "bucket"), Way(2, 1, "exact")
    assert chosen({steady: [80.0] * 4, fast: [100.0, 30.0, 30.0, 100.0]}, {steady: 1.0, fast: 1.0}, 2) == fast


def test_a_request_that_fails_ends_the_race(course):
    with pytest.raises(EngineError, match="13 is refused"):
        race(course(lambda *_: 0.0, [3, 13]), [Way(2, 1, "exact")], 0.01)


def interrupt():
    """Let the main thread be interrupted, as Ctrl-C does, while this one goes on in its call."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def test_an_interrupt_leaves_the_race_only_when_no_thread_is_inside_a_call(course):
    inside = []

    def work_s(size, _):
        inside.append(size)
        if len(inside) == 1:
            interrupt()
        return 0.05

    run = course(work_s, [3, 5, 11])
    open_engine = run.open_engine
    closed_after = []

    def opened(*words, **named):
        engine = open_engine(*words, **named)
        engine.close = lambda: closed_after.append((len(inside), len(engine.waited)))
        return engine

    with pytest.raises(KeyboardInterrupt):
        race(replace(run, open_engine=opened), [Way(2, 1, "exact")], 1e9)
    ((begun, ended),) = closed_after
    assert begun == ended
    assert begun < 6  # two callers with three requests each: the rest was left


def test_an_interrupt_while_ways_are_counted_waits_for_the_calls_that_began():
    begun, ended = [], []

    class Slow:
        def enqueue(self):
            begun.append(1)
            if len(begun) == 1:
                interrupt()
            end = time.perf_counter() + 0.05
            while time.perf_counter() < end:
                pass

        def wait(self):
            ended.append(1)

    with pytest.raises(KeyboardInterrupt):
        calls_per_s([Slow(), Slow()], 1e9)
    assert len(begun) == len(ended) <= 4


def test_a_padded_call_holds_the_fill_and_the_real_values(course):
    run = course(lambda *_: 0.0, [3])
    engine = run.open_engine(1)
    caller = Caller(engine, run.subject, run.rules)
    request = Request({"seq": 3}, {"seq": 8})
    caller.run(request)
    found = np.frombuffer(caller._slot.buffer, np.float32, 8)
    assert (found[3:] == 0).all()
    assert (found[:3] != 0).any()


def test_every_request_is_run_once_whoever_takes_it(course):
    run = course(lambda *_: 0.0, [])
    engines = [run.open_engine(1) for _ in range(3)]
    callers = [Caller(engine, run.subject, ()) for engine in engines]
    drive(callers, [Request({"seq": n}, {"seq": n}) for n in range(1, 13)])
    assert sorted(size for engine in engines for size in engine.seen) == list(range(1, 13))


def test_a_workload_has_the_shares_of_the_traffic(ladder_of):
    traffic = traffic_from_rows(["seq"], [[4], [16], [400]], [50, 40, 10])
    sizes = [request["seq"] for request in workload_of(traffic, count=10)]
    assert sorted(sizes) == [4] * 5 + [16] * 4 + [400]
    ladder = ladder_of({"seq": (1, 8)}, {"seq": (1, 16)})
    padded = requests_in(ladder, [{"seq": n} for n in sizes], frozenset(["seq"]), "bucket")
    assert [r.run_sizes["seq"] for r in padded] == [8 if r.sizes["seq"] == 4 else 16 for r in padded]
    assert len(padded) == 9  # 400 fits nowhere
