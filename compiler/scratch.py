"""Measure what a library allocates inside for each profile, in a process of its own, where nothing was freed before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path  # noqa: TC003 (decoders read annotations at run time)
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trtc.engines.layout import plan_layout
from trtc.engines.memory import array_at, host_slot
from trtc.engines.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_MEASURED = -1
_TIMEOUT_S = 120
_CHILD = "import sys; from trtc.compiler.scratch import measure_here; measure_here(sys.stdin.buffer.read())"


class Trial(msgspec.Struct, frozen=True):
    """One profile: its name, the sizes to run at, and a folder of ``<index>.npy``, one for each input."""

    profile: str
    sizes: dict[str, int]
    feeds: str


class ScratchJob(msgspec.Struct, frozen=True):
    """What the child process measures."""

    engine: str
    threads: int
    signature: Signature
    trials: tuple[Trial, ...]


def scratch_bytes(engine: Path, threads: int, signature: Signature, trials: Sequence[Trial]) -> dict[str, int]:
    """Return the anonymous memory that each profile adds inside ONNX Runtime, in bytes, by profile.

    What a run took inside is kept for later runs, so the figure of a profile includes those before it: give small
    ones first. -1 where it cannot be measured.
    """
    job = ScratchJob(str(engine), threads, signature, tuple(trials))
    try:
        done = subprocess.run(  # noqa: S603 (this interpreter, and a module of ours)
            [sys.executable, "-c", _CHILD], input=msgspec.json.encode(job), capture_output=True,
            timeout=_TIMEOUT_S, check=True,
        )  # fmt: skip
        return msgspec.json.decode(done.stdout, type=dict[str, int])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return {trial.profile: NOT_MEASURED for trial in trials}


def measure_here(data: bytes) -> None:
    """Run one job in this process and print the result as JSON."""
    from pathlib import Path

    from trtc.engines.onnxruntime.load import open_graph

    job = msgspec.json.decode(data, type=ScratchJob)
    engine = open_graph(Path(job.engine), job.threads)
    base = _anonymous_bytes()
    found: dict[str, int] = {}
    for trial in job.trials:
        layout = plan_layout(job.signature, trial.sizes)
        slot = host_slot(layout.size_bytes)
        slot.buffer[:] = bytes(len(slot.buffer))
        base += len(slot.buffer)  # The slot is planned memory, counted elsewhere.
        for i, spec in enumerate(job.signature.inputs):
            place = layout.inputs[spec.name]
            np.copyto(array_at(slot.buffer, place), np.load(Path(trial.feeds) / f"{i}.npy", allow_pickle=False))
        call = engine.prepare(layout, slot)
        for _ in range(2):
            call.enqueue()
            call.wait()
        found[trial.profile] = max(0, _anonymous_bytes() - base)
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _anonymous_bytes() -> int:
    from pathlib import Path

    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not say how much memory a process holds")
