"""Loading a bundle, digests checked, against a plain session; and a second build of the same inputs."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import Figure, Report, quartiles, us
from models import BUCKETS, build_minilm, minilm_path, plain_session

from trtc.runtime import load

ROUNDS = 21
BUILDS = 5


def measure(report: Report) -> None:
    """Add the figures."""
    with tempfile.TemporaryDirectory() as work:
        bundle = build_minilm(Path(work), "auto")
        a: list[float] = []
        b: list[float] = []
        for i in range(ROUNDS + 2):
            for side in (0, 1) if i % 2 else (1, 0):
                gc.collect()
                start = time.perf_counter()
                if side:
                    session = load(bundle)
                    taken = time.perf_counter() - start
                    session.close()
                else:
                    plain = plain_session(minilm_path())
                    taken = time.perf_counter() - start
                    del plain
                if i > 1:
                    (a if side else b).append(taken)
        ratios = [x / y for x, y in zip(a, b, strict=True)]
        report.add(
            Figure("load, digests checked, against InferenceSession(model.onnx)", us(statistics.median(a)),
                   us(statistics.median(b)), statistics.median(ratios), 1.0, quartiles(ratios),
                   f"MiniLM-L3, {ROUNDS} rounds in turns, files in the page cache")
        )  # fmt: skip
        report.add(_second_build(Path(work)))


def _second_build(work: Path) -> Figure:
    command = [
        sys.executable, "-m", "trtc.tools.cli", "build", str(minilm_path()), "-o", str(work / "again.trtc"), "-q",
        "--dim", "batch_size=1..8", "--buckets", "sequence_length=" + ",".join(map(str, BUCKETS)),
        "--pad", "sequence_length", "--pad", "batch_size", "--fill", "input_ids=0", "--fill", "attention_mask=0",
    ]  # fmt: skip
    environment = {**os.environ, "TRTC_CACHE_DIR": str(work / "cache")}
    times = []
    for _ in range(BUILDS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, env=environment)
        times.append(time.perf_counter() - start)
    again = statistics.median(times[1:])
    how = f"seconds, median of {BUILDS}; the bundle is written anew, digests checked"
    first = f"{times[0]:.1f} s (the first)"
    name = "second `trtc build` of the same inputs, whole command"
    return Figure(name, us(again), first, again, 1.0, quartiles(times[1:]), how)


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
