"""What a program waits for when it starts under ``trtc exec``: the command, imports, and the bundle.

In an environment with trtc as a user installs it. Programs take turns; processor seconds are those of the program and
all that it started.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from dataclasses import make_dataclass
from pathlib import Path
from time import perf_counter

import msgspec
from installed import installed_python
from measuring import Figure, Report, quartiles
from models import build_tiny

ROUNDS = 21
_FIELDS = [("a", int), ("b", str), ("c", tuple), ("d", int), ("e", str)]
_PLAIN = "import numpy as np, onnxruntime, sys; s = onnxruntime.InferenceSession(sys.argv[1])"
_RUN = "{}; s.run(None, {{'x0': np.zeros((1, 16), np.float32)}})"


def measure(report: Report) -> None:
    """Measure classes, the command alone, and a program that runs a tiny model once."""
    _classes(report)
    with tempfile.TemporaryDirectory(prefix="trtc-bench-") as folder:
        python = installed_python(Path(folder))
        model, bundle = build_tiny(Path(folder), 1, 1)
        trtc = [str(python.with_name("trtc")), "exec", "-q", "--bundle", str(bundle), "--"]
        nothing = [str(python), "-c", "pass"]
        once = [str(python), "-c", _RUN.format(_PLAIN), str(model)]
        _programs(report, "a program that does nothing: trtc exec alone", [*trtc, *nothing], nothing)
        _programs(report, "a program that runs a tiny model once", [*trtc, *once], once)


def _classes(report: Report) -> None:
    """Compare what two kinds of frozen classes take to make."""
    ours, peer = [], []
    for i in range(200):
        begin = perf_counter()
        msgspec.defstruct(f"S{i}", _FIELDS, frozen=True)
        middle = perf_counter()
        make_dataclass(f"D{i}", _FIELDS, frozen=True, slots=True)
        peer.append(perf_counter() - middle)
        ours.append(middle - begin)
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    low, middle_ratio, high = statistics.quantiles(ratios, n=4)
    ours_us, peer_us = (f"{1e6 * statistics.median(side):.0f} us" for side in (ours, peer))
    name = "making a frozen class of five fields: a Struct against a dataclass"
    report.add(Figure(name, ours_us, peer_us, middle_ratio, None, (low, high), "200 of each in turns"))


def _programs(report: Report, name: str, ours: list[str], peer: list[str]) -> None:
    pairs = [(_seconds(ours), _seconds(peer)) for _ in range(ROUNDS + 1)][1:]
    more_ms = sorted(1e3 * (a - b) for a, b in pairs)
    a, b = (statistics.median(side) for side in zip(*pairs, strict=True))
    how = f"median of {ROUNDS} pairs in turns; the ratio column is the difference in ms"
    report.add(
        Figure(
            name, f"{1e3 * a:.0f} ms", f"{1e3 * b:.0f} ms", statistics.median(more_ms), None, quartiles(more_ms), how
        )
    )


def _seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
