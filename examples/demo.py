"""What trtc does, in about a minute, with a real model and real sentences: build, proof, speed, memory, a refusal.

    make demo            or: python examples/demo.py [--out FOLDER] [--quick]

Every number is measured in this run, beside plain ONNX Runtime with the same threads and the same callers.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import inputs
import numpy as np
import onnxruntime
from rich.console import Console
from rich.text import Text

from trtc.compiler import BuildOptions, PaddingRefusedError, ShapeOptions, build
from trtc.compiler.verify import Padding
from trtc.engines import bundle_size_bytes
from trtc.engines.host import this_host
from trtc.runtime import TrtcError, load
from trtc.tools.durations import seconds_text
from trtc.tools.output import Progress, counted, print_line, print_table, size_text
from trtc.tools.planned import runs_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.runtime import Session

Feeds: TypeAlias = "dict[str, np.ndarray]"
EMBEDDING = "461"
MAX_TOKENS = 128
CLASSES = (("short", 1, 16), ("medium", 17, 48), ("long", 49, MAX_TOKENS))
"""Size classes of sentences: name, fewest and most tokens."""
WIDTH = 78

_MEMORY_OF_TRTC = """
import sys
import numpy as np
from trtc.runtime import load
run = load(sys.argv[1]).run
"""
_MEMORY_OF_ONNX_RUNTIME = """
import sys
import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
run = lambda feeds: session.run(None, feeds)
"""
_MEMORY_TAIL = """
from pathlib import Path
for tokens in (8, 32, 128, 96, 64, 16):
    run({name: np.ones((1, tokens), np.int64) for name in ("input_ids", "attention_mask")})
for line in Path("/proc/self/status").read_text().splitlines():
    if line.startswith(("VmHWM:", "RssAnon:")):
        print(line.split()[1])
"""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much the demo does.

    Attributes:
        buckets: sequence lengths of the profiles.
        rows: most sentences in one request.
        texts: sentences of each size class.
        rounds: of every measurement; the table shows medians over them.
        measure_s, verify_s: as the build takes them.
    """

    buckets: tuple[int, ...] = (16, 48, MAX_TOKENS)
    rows: int = 4
    texts: int = 24
    rounds: int = 7
    measure_s: float = 2.0
    verify_s: float = 8.0


QUICK = Extent(buckets=(16, MAX_TOKENS), rows=2, texts=3, rounds=2, measure_s=0.0, verify_s=1.0)


def show_title(text: str) -> None:
    """Begin a part of the demo."""
    console = Console(highlight=False)
    print_line()
    console.print(Text(text, style="bold"))


def show_text(text: str) -> None:
    """Print a paragraph, wrapped for reading."""
    print_line(textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False))


def build_minilm(folder: Path, extent: Extent) -> tuple[Path, Manifest]:
    """Build the sentence encoder as ``trtc build`` does, and show the command."""
    bundle = folder / "minilm-demo.trtc"
    buckets = ",".join(str(size) for size in extent.buckets)
    print_line(f"  $ trtc build {inputs.MINILM[1].rpartition('/')[2]} -o {bundle.name} \\")
    print_line(f"      --dim batch_size=1..{extent.rows} --buckets sequence_length={buckets} \\")
    print_line("      --pad sequence_length --fill input_ids=0 --fill attention_mask=0 \\")
    print_line("      --pad batch_size")
    options = BuildOptions(
        shapes=ShapeOptions(dim=(f"batch_size=1..{extent.rows}",), buckets=(f"sequence_length={buckets}",)),
        pads=("sequence_length", "batch_size"),
        fills=("input_ids=0", "attention_mask=0"),
        measure_s=extent.measure_s,
        verify_s=extent.verify_s,
        use_cache=False,  # the demo shows a build, not a copy of the last one
    )
    progress = Progress()
    try:
        report = build(inputs.locate(*inputs.MINILM), bundle, options, progress)
    finally:
        progress.done()
    show_text(f"built in {seconds_text(report.build_s)}: {size_text(bundle_size_bytes(report.manifest))}")
    return bundle, report.manifest


def show_proof(manifest: Manifest) -> None:
    """Say what the build has shown, from the manifest that travels with the bundle."""
    rows = []
    for evidence in manifest.evidence:
        worst = max((finding.max_abs for finding in evidence.findings), default=0.0)
        symbols = evidence.symbol.replace(",", " and ")
        if evidence.kind == "relations":
            rows.append(("output sizes follow input sizes", f"{evidence.runs} runs", ""))
        elif evidence.kind == "rows":
            rows.append((f"rows independent: {symbols}", f"{evidence.runs} runs", f"{worst:.1e}" if worst else "0"))
        else:
            rows.append((f"padded = exact: {symbols}", f"{evidence.runs} runs", f"{worst:.1e}" if worst else "0"))
    for engine in manifest.engines:
        for reference in dict.fromkeys(v.reference for v in engine.verification if v.ran and v.passed):
            found = [v for v in engine.verification if v.reference == reference and v.ran]
            worst = max((v.worst.max_abs for v in found if v.worst), default=0.0)
            short = reference.partition(",")[0]
            rows.append(
                (f"engine = {short}", f"{sum(v.runs for v in found)} comparisons", f"{worst:.1e}" if worst else "0")
            )
    print_table("", ("proven", "by", "max diff"), rows)
    domain = ", ".join(
        f"{name} in {d.low:g}..{d.high:g}{' (no row all zero)' if d.rows_nonzero else ''}"
        for name, d in Padding(manifest.padding, manifest.evidence).domain.items()
    )
    show_text(f"padding was proven for {domain}; other requests run at their exact sizes")
    show_text(runs_text(manifest.execution))


def requests_by_class(extent: Extent) -> dict[str, list[Feeds]]:
    """Return real sentences of each size class, one a request: int64 [1, tokens]."""
    tokenizer = inputs.tokenizer()
    lists = [tokenizer.encode(sentence).ids for sentence in inputs.sentences()]
    found = {}
    for name, low, high in CLASSES:
        fitting = [ids for ids in lists if low <= len(ids) <= high]
        chosen = fitting[:: max(1, len(fitting) // extent.texts)][: extent.texts]
        found[name] = [
            {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
            for ids in chosen
        ]
    return found


def padded_to_maximum(feeds: Feeds) -> Feeds:
    """Pad ids and mask with zeros to the largest size: the usual way to one fixed shape."""
    return {name: np.pad(array, ((0, 0), (0, MAX_TOKENS - array.shape[1]))) for name, array in feeds.items()}


def rates(
    ways: dict[str, Callable[[Feeds], object]], requests: Sequence[Feeds], callers: int, rounds: int
) -> dict[str, list[float]]:
    """Measure requests per second of each way, in turn, so that all meet the same machine."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    with ThreadPoolExecutor(callers) as pool:
        for number in range(rounds + 1):
            for name, way in ways.items():
                start_s = time.perf_counter()
                list(pool.map(way, requests))
                if number:  # the first round warms up
                    found[name].append(len(requests) / (time.perf_counter() - start_s))
    return found


def rate_text(values: Sequence[float]) -> str:
    """Write a median, and half of the range around it."""
    middle = statistics.median(values)
    return f"{middle:.0f} ±{(max(values) - min(values)) / 2 / middle:.0%}"


def ratio_text(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Write the median of the ratios of each round, in which both met the same machine."""
    return f"{statistics.median(a / b for a, b in zip(ours, theirs, strict=True)):.2f}x"


def compare_speed(session: Session, model: Path, extent: Extent) -> bool:
    """Print texts a second for each size class; return whether every answer was the same."""
    execution = session.explain().execution
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = execution.threads
    plain = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    ways: dict[str, Callable[[Feeds], object]] = {
        "trtc": session.run,
        "exact": partial(plain.run, None),
        "maximum": lambda feeds: plain.run(None, padded_to_maximum(feeds)),
    }
    atol, rtol = session.manifest.tolerance
    rows, same = [], True
    for name, requests in requests_by_class(extent).items():
        worst = 0.0
        for feeds in requests:
            ours, theirs = session.run(feeds)[EMBEDDING], plain.run([EMBEDDING], feeds)[0]
            difference = float(np.abs(ours - theirs).max())
            same &= difference <= atol + rtol * float(np.abs(theirs).max())
            worst = max(worst, difference)
        found = rates(ways, requests, execution.slots, extent.rounds)
        tokens = [feeds["input_ids"].shape[1] for feeds in requests]
        rows.append(
            (
                name,
                f"{min(tokens)}-{max(tokens)}",
                rate_text(found["trtc"]),
                rate_text(found["exact"]),
                rate_text(found["maximum"]),
                ratio_text(found["trtc"], found["exact"]),
                ratio_text(found["trtc"], found["maximum"]),
                f"{worst:.0e}" if worst else "0",
            )
        )
    columns = ("class", "tokens", "trtc", "ORT exact", f"ORT {MAX_TOKENS}", "vs exact", f"vs {MAX_TOKENS}", "max diff")
    print_table("", columns, rows)
    show_text(
        f"texts per second: median of {extent.rounds} rounds in turn, ± half the range; {extent.texts} sentences of "
        f"Python's documentation in each class, one a request; {counted(execution.slots, 'caller')}, threads a call "
        f"{execution.threads}, for all three ways. ORT {MAX_TOKENS}: every request padded to {MAX_TOKENS} tokens, "
        "the usual fixed shape"
    )
    return same


def compare_loading(bundle: Path, model: Path, rounds: int) -> None:
    """Print how long loading takes, and what a process holds afterwards."""
    taken: dict[str, list[float]] = {"trtc": [], "plain": []}
    for _ in range(rounds):
        start_s = time.perf_counter()
        with load(bundle):
            taken["trtc"].append(time.perf_counter() - start_s)
        start_s = time.perf_counter()
        onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        taken["plain"].append(time.perf_counter() - start_s)
    memory = {
        "trtc": _memory_bytes(_MEMORY_OF_TRTC, bundle),
        "plain": _memory_bytes(_MEMORY_OF_ONNX_RUNTIME, model),
    }
    rows = [
        (title, *(seconds_text(f(taken[way])) for f in (statistics.median, min, max)), *map(size_text, memory[way]))
        for way, title in (("trtc", "trtc (checked)"), ("plain", "ORT, model.onnx"))
    ]
    print_table("", ("loading", "median", "fastest", "slowest", "peak memory", "private"), rows)
    show_text("memory: of a process of its own that loads and runs six sizes; private is what processes cannot share")


def _memory_bytes(program: str, path: Path) -> tuple[int, int]:
    """Run a small program and return the peak and the private memory that its process reports."""
    command = [sys.executable, "-c", program + _MEMORY_TAIL, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (this interpreter)
    peak_kib, private_kib = done.stdout.split()
    return int(peak_kib) * 1024, int(private_kib) * 1024


def show_refusal(folder: Path) -> bool:
    """Ask for a padding that is wrong; return whether it was refused."""
    width = "p2o.DynamicDimension.1"
    print_line(f"  $ trtc build {inputs.RECOGNISER[1].rpartition('/')[2]} --pad {width} --fill x=1 ...")
    options = BuildOptions(
        shapes=ShapeOptions(dim=("p2o.DynamicDimension.0=1..2", f"x_2={inputs.LINE_HEIGHT_PX}", f"{width}=32..96")),
        pads=(width,),
        fills=("x=1",),
        use_cache=False,
    )
    try:
        build(inputs.locate(*inputs.RECOGNISER), folder / "refused.trtc", options)
    except PaddingRefusedError as error:
        show_text(f"trtc: error: {error}")
        return True
    return False


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every answer was right and the wrong padding was refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=inputs.BUILD_FOLDER, help="folder for the bundle (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    given = parser.parse_args(argv)
    extent = QUICK if given.quick else Extent()
    host, model = this_host(), inputs.locate(*inputs.MINILM)

    print_line("trtc compiles a sentence encoder for the sizes it will see and races ONNX Runtime.")
    print_line(
        f"{host.cpu}, {host.threads} processors; Python {platform.python_version()}, "
        f"onnxruntime {version('onnxruntime')} (ORT), trtc {version('trtc')}"
    )
    show_title("1. Build: buckets for the length of a sentence, padding declared")
    bundle, manifest = build_minilm(given.out, extent)
    show_title("2. What the build has shown, by experiment")
    show_proof(manifest)
    show_title("3. Speed, for sentences of three size classes")
    with load(bundle) as session:
        same = compare_speed(session, model, extent)
    show_title("4. Loading and memory")
    compare_loading(bundle, model, extent.rounds)
    show_title("5. A padding that would have changed answers: the width of a text recogniser")
    refused = show_refusal(given.out)
    show_title("6. Next")
    where = bundle.relative_to(Path.cwd()) if bundle.is_relative_to(Path.cwd()) else bundle
    command = os.path.relpath(Path(sys.executable).parent / "trtc")
    for words in (f"inspect {where}", f"run {where} --all-profiles", "build your-model.onnx"):
        print_line(f"  $ {command} {words}")
    print_line()
    print_line(
        "every answer was the same, and the wrong padding was refused" if same and refused else "SOMETHING IS WRONG"
    )
    return 0 if same and refused else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except TrtcError as error:
        sys.exit(f"trtc: error: {error}")
