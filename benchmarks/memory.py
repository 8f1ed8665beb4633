"""Memory: of a loaded bundle against one plain session, and over many calls of varying sizes.

Each side runs in a process of its own, since memory that one of them freed would serve the other.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring import Figure, Report, status_kib
from models import build_minilm, build_tiny, minilm_path, minilm_request, plain_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.runtime import Session

TRAFFIC = 400
MINILM_CALLS, TINY_CALLS = 20_000, 1_000_000
BAR_KIB = 2048


def measure(report: Report) -> None:
    """Add the figures."""
    with tempfile.TemporaryDirectory() as work:
        bundle = build_minilm(Path(work), "auto")
        ours, peer = (_child("resident", str(path)) for path in (bundle, minilm_path()))
        note = (
            f"{TRAFFIC} requests from {ours['callers']} callers, batch 1..4, 1..128 tokens; growth of VmRSS over the "
            f"imported library; the peak (VmHWM) is {ours['peak_kib'] / peer['peak_kib']:.3f} of the peer's"
        )
        report.add(
            Figure(
                "resident memory after the same traffic",
                f"{ours['grown_kib'] / 1024:.0f} MiB",
                f"{peer['grown_kib'] / 1024:.0f} MiB",
                ours["grown_kib"] / peer["grown_kib"],
                1.05,
                note=note,
            )
        )
        _model, tiny = build_tiny(Path(work), 1, 1)
        for name, path, calls in (("MiniLM-L3", bundle, MINILM_CALLS), ("tiny model", tiny, TINY_CALLS)):
            found = _child("grow", str(path), str(calls))
            seen = "seen" if found["planted"] == 1 else "NOT SEEN"
            note = f"ratio is to 2 MiB; malloc in use grew by {found['malloc_kib']:.0f} KiB"
            grown = f"{found['grown_kib']:.0f} KiB"
            what = f"resident growth over {calls} further calls, {name}"
            report.add(Figure(what, grown, "-", found["grown_kib"] / BAR_KIB, 1.0, note=note))
            what = f"arena reservations over these calls, {name}"
            note = f"must be exactly 0; a planted reservation was {seen}"
            allocations = found["allocations"]
            report.add(Figure(what, f"{allocations:.0f}", "-", float(allocations), 0.0, note=note))


def _child(*arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def resident(path: Path) -> dict[str, float]:
    """Load one side, run the same traffic with the same concurrency, and read this process's memory."""
    import onnxruntime  # noqa: F401 (both sides pay for the library before the count starts)

    import trtc.runtime

    rng = np.random.default_rng(3)
    requests = [minilm_request(rng, int(rng.integers(1, 5)), int(rng.integers(1, 129))) for _ in range(TRAFFIC)]
    before = status_kib("VmRSS")
    callers = 2
    if path.suffix == ".onnx":
        plain = plain_session(path, threads=1)
        _traffic(lambda feeds: plain.run(["461"], feeds), requests, callers)
    else:
        session = trtc.runtime.load(path, slots=callers, threads=1)
        _traffic(lambda feeds: session.run(feeds, ["461"]), requests, callers)
    return {"grown_kib": status_kib("VmRSS") - before, "peak_kib": status_kib("VmHWM") - before, "callers": callers}


def _traffic(
    run: Callable[[dict[str, np.ndarray]], object], requests: list[dict[str, np.ndarray]], callers: int
) -> None:
    def work(i: int) -> None:
        for feeds in requests[i::callers]:
            run(feeds)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def grow(path: Path, calls: int) -> dict[str, float]:
    """Warm up over all sizes, then run many more calls, and read what grew."""
    import trtc.runtime

    session = trtc.runtime.load(path)
    rng = np.random.default_rng(4)
    if "input_ids" in {spec.name for spec in session.signature.inputs}:
        feeds = [minilm_request(rng, 1, length) for length in range(1, 129)]
    else:
        feeds = [{"x0": np.ones((rows, 16), np.float32)} for rows in range(1, 5)]
    for _ in range(3 * session.stats.slots):
        for f in reversed(feeds):
            session.run(f)
    order = rng.integers(0, len(feeds), calls)
    before = (session.stats.arena.allocations, status_kib("VmRSS"), _malloc_bytes())
    for i in order:
        session.run(feeds[i])
    after = (session.stats.arena.allocations, status_kib("VmRSS"), _malloc_bytes())
    return {
        "allocations": after[0] - before[0],
        "grown_kib": max(0, after[1] - before[1]),
        "malloc_kib": (after[2] - before[2]) / 1024,
        "planted": _planted(session),
    }


def _planted(session: Session) -> int:
    """Reserve once on purpose: the counter must move, or it counts nothing."""
    arena = session._loaded.arena  # noqa: SLF001 (there is no public way to allocate behind a session's back)
    before = session.stats.arena.allocations
    arena.release(arena.reserve(1))
    return session.stats.arena.allocations - before


def _malloc_bytes() -> int:
    """Bytes that the C allocator has handed out (glibc 2.33 or newer)."""

    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                         "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip

    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Info
    info = libc.mallinfo2()
    return int(info.uordblks + info.hblkhd)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        job, target, *rest = sys.argv[1:]
        print(json.dumps(resident(Path(target)) if job == "resident" else grow(Path(target), int(rest[0]))))
    else:
        only = Report()
        measure(only)
        only.show()
