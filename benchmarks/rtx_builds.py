"""What one more profile costs when TensorRT for RTX builds: seconds and bytes, on a machine that needs no GPU."""

from __future__ import annotations

import statistics
import tempfile
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from measuring import Figure, Report
from models import minilm_path

from trtc.compiler.importer import load_model
from trtc.compiler.signature import model_inputs
from trtc.engines.build import EngineRequest
from trtc.engines.signature import Signature, TensorSpec
from trtc.engines.target import parse_target
from trtc.profiles import Ladder, Profile, Range

if TYPE_CHECKING:
    from trtc.compiler.model import Model

COUNTS = (1, 2, 4, 8)
ROUNDS = 3
LENGTHS = (16, 32, 48, 64, 96, 128, 192, 256)
TARGETS = ("rtx:sm89", "rtx:sm89,sm120")
_MIB = 2**20


def measure(report: Report) -> None:
    """Add the figures; without the library there are none."""
    if find_spec("tensorrt_rtx") is None:
        print("rtx_builds: tensorrt_rtx is not installed (pip install 'trtc[rtx]'), nothing was measured")
        return
    with tempfile.TemporaryDirectory() as work:
        model = load_model(minilm_path(), work_folder=Path(work) / "model")
        for target in TARGETS:
            _add(report, model, target, Path(work))


def _add(report: Report, model: Model, target: str, work: Path) -> None:
    """Build with 1, 2, 4 and 8 profiles, in turns, and say what each further one added."""
    seconds: dict[int, list[float]] = {count: [] for count in COUNTS}
    sizes: dict[int, int] = {}
    for turn in range(ROUNDS):
        for count in COUNTS if turn % 2 else reversed(COUNTS):
            took_s, sizes[count] = _build(model, target, count, work)
            seconds[count].append(took_s)
    median_s = {count: statistics.median(times) for count, times in seconds.items()}
    first_s, first_bytes = median_s[COUNTS[0]], sizes[COUNTS[0]]
    steps_s = [(median_s[b] - median_s[a]) / (b - a) for a, b in pairwise(COUNTS)]
    steps_bytes = [(sizes[b] - sizes[a]) / (b - a) for a, b in pairwise(COUNTS)]
    more_s, more_bytes = statistics.median(steps_s), statistics.median(steps_bytes)
    how = f"MiniLM-L3, {', '.join(map(str, COUNTS))} profiles, {ROUNDS} builds each in turns, a process each"
    report.add(
        Figure(f"{target}: seconds of one more profile, against the first", f"{more_s:.2f} s", f"{first_s:.2f} s",
               more_s / first_s, None, (min(steps_s) / first_s, max(steps_s) / first_s), how)
    )  # fmt: skip
    report.add(
        Figure(f"{target}: bytes of one more profile, against the first", f"{more_bytes / _MIB:.2f} MiB",
               f"{first_bytes / _MIB:.1f} MiB", more_bytes / first_bytes, None,
               (min(steps_bytes) / first_bytes, max(steps_bytes) / first_bytes), how)
    )  # fmt: skip


def _build(model: Model, target: str, count: int, work: Path) -> tuple[float, int]:
    """Build once; return seconds and bytes."""
    from trtc.engines.tensorrt.build import build_engine

    with tempfile.TemporaryDirectory(dir=work) as folder:
        ranges = [{"batch_size": Range(1, 8, 8), "sequence_length": Range(1, n, n)} for n in LENGTHS[:count]]
        request = EngineRequest(
            model_path=model.path,
            folder=Path(folder),
            signature=_signature(model),
            ladder=Ladder(tuple(Profile(f"p{i}", r) for i, r in enumerate(ranges))),
            threads=1,
            target=parse_target(target),
        )
        begun = time.perf_counter()
        built = build_engine(request)
        return time.perf_counter() - begun, built.files[built.entry].stat().st_size


def _signature(model: Model) -> Signature:
    """Inputs with their symbols; sizes of outputs do not matter to a builder."""
    types = {1: "float", 7: "int64"}
    outputs = tuple(
        TensorSpec(out.name, types[out.type.tensor_type.elem_type], tuple(None for _ in out.type.tensor_type.shape.dim))
        for out in model.proto.graph.output
    )
    return Signature(model_inputs(model), outputs)


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
