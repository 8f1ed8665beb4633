"""Requests as a session serves them, run and timed by the compiler: values in, padding, the run, results out."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.compiler.probes.subject import reduced
from trtc.engines.at_once import at_once
from trtc.engines.memory import array_at, host_slot
from trtc.engines.route import fill_input, plan_route
from trtc.profiles import TrtcError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.compiler.probes.subject import Feeds, Subject
    from trtc.engines.protocol import Call, Engine
    from trtc.engines.route import RoutePlan
    from trtc.engines.signature import TensorSpec
    from trtc.profiles import PadRule

_TOLD_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        sizes: that it has.
        run_sizes: that it runs at.
    """

    sizes: dict[str, int]
    run_sizes: dict[str, int]


class Caller:
    """One slot, with calls prepared on it as they are needed. One thread uses it at a time.

    Args:
        engine: that runs them.
        subject: signature and values.
        rules: how sizes grow to run sizes.
    """

    def __init__(self, engine: Engine, subject: Subject, rules: Sequence[PadRule]) -> None:
        self._engine = engine
        self._subject = subject
        self._rules = rules
        self._slot = host_slot(0)
        self._prepared: dict[tuple[tuple[int, ...], tuple[int, ...]], _Prepared] = {}

    def run(self, request: Request) -> None:
        """Run one request; its first run prepares it."""
        found = self._prepared.get(_key(request)) or self._prepare(request)
        slot = self._slot
        for spec in found.specs:
            if spec.name in found.route.layout.inputs:
                place = array_at(slot.buffer, found.route.layout.inputs[spec.name])
                fill_input(place, found.feeds[spec.name], found.route.inputs[spec.name])
            else:
                slot.objects[spec.name] = found.feeds[spec.name]
        found.call.enqueue()
        found.call.wait()
        for name, output in found.route.layout.outputs.items():
            real: Any = (*found.route.trims[name], ...)
            array_at(slot.buffer, output)[real].copy()

    def seconds(self, request: Request) -> float:
        """Run one request and return how long it took."""
        start_s = time.perf_counter()
        self.run(request)
        return time.perf_counter() - start_s

    def _prepare(self, request: Request) -> _Prepared:
        feeds = self._subject.values.feeds(request.sizes, np.random.default_rng(0))
        signature = reduced(self._subject.signature, feeds)
        route = plan_route(signature, self._rules, request.sizes, request.run_sizes)
        if route.layout.size_bytes > len(self._slot.buffer):
            self._slot = host_slot(route.layout.size_bytes * 3 // 2)
            self._prepared.clear()
        placed = route.layout.inputs
        self._slot.objects.update((spec.name, None) for spec in signature.inputs if spec.name not in placed)
        call = self._engine.prepare(route.layout, self._slot)
        made = self._prepared[_key(request)] = _Prepared(call, route, feeds, signature.inputs)
        return made


@dataclass(frozen=True, slots=True)
class _Prepared:
    call: Call
    route: RoutePlan
    feeds: Feeds
    specs: tuple[TensorSpec, ...]


def _key(request: Request) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(request.sizes.values()), tuple(request.run_sizes.values())


class Tally:
    """Counts requests that were run, and tells it a few times a second at most. Any thread may count.

    Args:
        tell: told how many.
        text: that the number stands in, such as ``{} of 36 requests``.
    """

    def __init__(self, tell: Callable[[str], None], text: str) -> None:
        self.done = 0
        self._tell = tell
        self._text = text
        self._lock = threading.Lock()
        self._told_s = -math.inf

    def add(self) -> None:
        """Count one more."""
        with self._lock:
            self.done += 1
            if (now_s := time.perf_counter()) - self._told_s >= _TOLD_EVERY_S:
                self._told_s = now_s
                self._tell(self._text.format(self.done))


@dataclass(slots=True)
class _Queue:
    """Requests that are left, and what went wrong; callers take from it one by one."""

    left: Any
    tally: Tally | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    failures: list[TrtcError] = field(default_factory=list)

    def next(self) -> Request | None:
        with self.lock:
            request: Request | None = None if self.failures else next(self.left, None)
            return request


def drive(callers: Sequence[Caller], requests: Sequence[Request], tally: Tally | None = None) -> float:
    """Run all requests, each taken by the caller that is free first; seconds in all. A tally counts them.

    Raises:
        EngineError: of the first request that failed.
    """
    queue = _Queue(iter(requests), tally)
    return _together([(caller, queue) for caller in callers])


def warm_up(callers: Sequence[Caller], requests: Sequence[Request], tally: Tally | None = None) -> float:
    """Let every caller run every request once, the largest first so that its slot grows once; seconds in all.

    A tally counts what they run.

    Raises:
        EngineError: as ``drive`` does.
    """
    ordered = sorted(distinct(requests), key=lambda request: -prod(request.run_sizes.values()))
    return _together([(caller, _Queue(iter(ordered), tally)) for caller in callers])


def distinct(requests: Sequence[Request]) -> list[Request]:
    """The requests without repetitions."""
    return list({_key(request): request for request in requests}.values())


def _together(work: Sequence[tuple[Caller, _Queue]]) -> float:
    """Let each caller empty its queue, in a thread of its own where there are several; seconds in all."""
    start_s = time.perf_counter()
    if len(work) == 1:
        _empty(*work[0], threading.Event())
    else:
        over = threading.Event()
        at_once([partial(_empty, *part, over) for part in work], over.set)
    taken_s = time.perf_counter() - start_s
    for _, queue in work:
        if queue.failures:
            raise queue.failures[0]
    return taken_s


def _empty(caller: Caller, queue: _Queue, over: threading.Event) -> None:
    try:
        while not over.is_set() and (request := queue.next()) is not None:
            caller.run(request)
            if queue.tally is not None:
                queue.tally.add()
    except TrtcError as error:
        queue.failures.append(error)
