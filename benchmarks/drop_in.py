"""Whole programs on bundles beside plain ONNX Runtime, and what recording costs a call.

In an environment with trtc as a user installs it. Runs of a program take turns: on bundles, plain, on bundles ... Each
pair gives one ratio of wall times, start of Python and opening of models included. What recording costs is measured in
one process on feeds that are there, without a model; for bindings, which do nothing without one, on a model that copies
its inputs, as the difference of runs in turns.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from installed import installed_python
from measuring import Figure, Report
from onnx import TensorProto, helper

from trtc.compiler import BuildOptions, build
from trtc.runtime.compat.desk import Desk
from trtc.runtime.compat.session_class import session_class
from trtc.runtime.compat.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = Path(__file__).resolve().parent.parent / "tests" / "programs"
PAIRS = 15
CALLS = 100_000
_QUICK = BuildOptions(measure_s=0.0, verify_s=1.0)


def measure(report: Report) -> None:
    """Measure what is installed; say what is not."""
    _recording(report)
    _recording_bindings(report)
    with tempfile.TemporaryDirectory(prefix="trtc-bench-") as folder:
        python = installed_python(Path(folder))
        for name, program, models, args in _programs():
            missing = [str(model) for model in models if not model.is_file()]
            if missing:
                print(f"{name}: not measured, {missing[0]} is not there")
                continue
            _program(report, name, [str(python), str(PROGRAMS / program), *map(str, args)], models, Path(folder))


def _programs() -> list[tuple[str, str, list[Path], list[Path]]]:
    root = PROGRAMS.parents[1]
    ocr = _file("rapidocr-onnxruntime", "rapidocr_onnxruntime/models")
    pages = [_file("scikit-image", f"skimage/data/{page}.png") for page in ("page", "text")]
    files = [path for part in ("docs", "engines", "tools") for path in sorted((root / part).glob("*.*"))]
    found = [
        ("rapidocr, two pages", "read_pages.py", sorted(ocr.glob("*.onnx")) or [ocr], pages * 3),
        ("magika, files of this repository", "label_files.py",
         [_file("magika", "magika/models/standard_v3_3/model.onnx")], files),
    ]  # fmt: skip
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401

        silero = _file("silero-vad", "silero_vad/data/silero_vad.onnx")
        found.append(("silero-vad, three seconds", "find_speech.py", [silero], []))
    return found


def _file(package: str, path: str) -> Path:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        return Path(package)


def _program(report: Report, name: str, command: list[str], models: list[Path], folder: Path) -> None:
    bundles = []
    for model in models:
        bundle = folder / f"{model.stem}.trtc"
        build(model, bundle, _QUICK)
        bundles += ["--bundle", str(bundle)]
    served = [str(Path(command[0]).with_name("trtc")), "exec", "-q", *bundles, "--", *command]
    _seconds(command)
    _seconds(served)
    pairs = [(_seconds(served), _seconds(command)) for _ in range(PAIRS)]
    ratios = [ours / peer for ours, peer in pairs]
    low, _, high = statistics.quantiles(ratios, n=4)
    ours, peer = (statistics.median(side) for side in zip(*pairs, strict=True))
    note = f"{PAIRS} pairs, one warm-up; the command trtc exec and the start of Python included"
    report.add(Figure(name, f"{ours:.2f} s", f"{peer:.2f} s", statistics.median(ratios), 1.0, (low, high), note))


def _seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    return time.perf_counter() - begin


def _recording(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="trtc-bench-") as folder:
        model = Path(folder) / "model.onnx"
        model.write_bytes(b"any bytes")
        desk = Desk(Settings(record=str(Path(folder) / "r.jsonl")))
        counts = desk.model(str(model))
        if counts is None:
            raise AssertionError("a file has a digest")
        feeds = [{"ids": np.zeros((1, n), np.int64), "mask": np.zeros((1, n), np.int64)} for n in range(1, 65)]
        for feed in feeds * 4:
            counts.note_feeds(feed, perf_counter())
        taken = []
        for _ in range(5):
            begin, moment = process_time(), perf_counter()
            for i in range(CALLS // 5):
                counts.note_feeds(feeds[i % 64], moment)
            taken.append(1e6 * (process_time() - begin) / (CALLS // 5))
        desk.write(wait=True)
    median = statistics.median(taken)
    note = f"processor time, {CALLS} calls of 64 sizes, two inputs; samples and writing in between are included"
    report.add(Figure("recording a call, us", f"{median:.2f} us", "", median, 5.0, (min(taken), max(taken)), note))


def _recording_bindings(report: Report) -> None:
    names = ("ids", "mask")
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in names]
    values = {
        n: helper.make_tensor_value_info(n, TensorProto.INT64, ["rows", "seq"]) for n in (*names, "ids_out", "mask_out")
    }
    graph = helper.make_graph(nodes, "copies", [values[n] for n in names], [values[f"{n}_out"] for n in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    feeds = [{name: np.zeros((1, n), np.int64) for name in names} for n in range(1, 65)]
    with tempfile.TemporaryDirectory(prefix="trtc-bench-") as folder:
        desk = Desk(Settings(record=str(Path(folder) / "r.jsonl")))
        kind = session_class(sys.modules["onnxruntime.capi.onnxruntime_inference_collection"], desk)
        session = kind(model, options)
        # The same session without us: a class of one's own is left alone, the library's own method records nothing.
        ways = [(session.io_binding, session.run_with_iobinding)]
        ways += [(partial(_Plain, session), partial(onnxruntime.InferenceSession.run_with_iobinding, session))]
        for way in ways:
            _bound_calls(*way, feeds * 4)
        pairs = [[_bound_calls(*way, feeds * (CALLS // 320)) for way in ways] for _ in range(PAIRS)]
        desk.write(wait=True)
    taken = [recorded - plain for recorded, plain in pairs]
    median = statistics.median(taken)
    note = f"processor time more than plain; {PAIRS} pairs of {64 * (CALLS // 320)} calls, each with a new binding"
    report.add(
        Figure(
            "recording a call through a binding, us",
            f"{median:.2f} us",
            "",
            median,
            5.0,
            (min(taken), max(taken)),
            note,
        )
    )


class _Plain(onnxruntime.IOBinding):
    """A binding that is not recorded."""


def _bound_calls(bind: Callable[[], Any], run: Callable[[Any], None], feeds: list[dict[str, np.ndarray]]) -> float:
    """Run all feeds through bindings; return the mean microseconds of processor time."""
    begin = process_time()
    for feed in feeds:
        binding = bind()
        for name, array in feed.items():
            binding.bind_cpu_input(name, array)
            binding.bind_output(f"{name}_out")
        run(binding)
    return 1e6 * (process_time() - begin) / len(feeds)


if __name__ == "__main__":
    found = Report()
    measure(found)
    found.show()
