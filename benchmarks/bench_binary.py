"""The standalone program against ``trtc bench``: the same bundle and sizes, processes in turns.

make binary && python benchmarks/bench_binary.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distribution
from pathlib import Path

from measuring import Figure, Report, quartiles, us
from models import build_minilm

from trtc.compiler.options import BuildOptions
from trtc.compiler.pipeline import build
from trtc.profiles.grammar import ShapeOptions

PROGRAM = Path(__file__).resolve().parents[1] / "dist/trtc-bench"
ROUNDS, BAR, STARTS, START_BAR_S = 7, 1.05, 11, 1.5
SENTENCE, LINE = "batch_size=1,sequence_length=17", "x[1,3,48,160]"


def measure(report: Report) -> None:
    """Add the figures."""
    starts = sorted(_started_s() for _ in range(STARTS))
    middle = statistics.median(starts)
    how = f"seconds from start to end of --version with an empty environment, median of {STARTS}"
    report.add(
        Figure("start of the standalone program", f"{middle:.2f} s", "", middle, START_BAR_S, quartiles(starts), how)
    )
    with tempfile.TemporaryDirectory() as work:
        for name, bundle, sizes in (
            ("MiniLM, 1 row of 17 tokens", build_minilm(Path(work), "exact"), ("--sizes", SENTENCE)),
            ("PP-OCR, 1 line of 160 pixels", _ppocr(Path(work)), ("--shape", LINE)),
        ):
            report.add(_figure(name, bundle, sizes))


def _figure(name: str, bundle: Path, sizes: tuple[str, ...]) -> Figure:
    words = [str(bundle), *sizes, "--threads", "1", "--duration", "2", "--json"]
    ours: list[float] = []
    peer: list[float] = []
    for i in range(ROUNDS + 1):
        for side in (0, 1) if i % 2 else (1, 0):
            command = [str(PROGRAM)] if side else [sys.executable, "-m", "trtc.tools.cli", "bench"]
            done = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
            median_s = json.loads(done.stdout)["cases"][0]["latency"]["median_s"]
            if i:
                (ours if side else peer).append(median_s)
    ratios = sorted(a / b for a, b in zip(ours, peer, strict=True))
    return Figure(
        f"median of the standalone program, against trtc bench: {name}",
        us(statistics.median(ours)),
        us(statistics.median(peer)),
        statistics.median(ratios),
        BAR,
        quartiles(ratios),
        f"{ROUNDS} processes of each in turns, 2 s each, 1 thread",
    )


def _ppocr(work: Path) -> Path:
    package = distribution("rapidocr-onnxruntime")
    model = Path(str(package.locate_file("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx")))
    shapes = ShapeOptions(shape=("x[1..4,3,48,64..320]",))
    build(model, work / "ppocr.trtc", BuildOptions(shapes=shapes, measure_s=0, verify_s=10))
    return work / "ppocr.trtc"


def _started_s() -> float:
    begun_s = time.perf_counter()
    subprocess.run([str(PROGRAM), "--version"], check=True, env={}, capture_output=True)
    return time.perf_counter() - begun_s


if __name__ == "__main__":
    if not PROGRAM.is_file():
        sys.exit(f"{PROGRAM} is not there; build it with make binary")
    only = Report()
    measure(only)
    only.show()
