"""Run a job in a process of its own and wait for it.

The builder is native code that is given whatever model comes. In a process of its own a crash is an error like any
other, the builder's memory is gone when it ends, and Ctrl-C stops it at once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from trtc.engines.errors import EngineError
from trtc.engines.tensorrt.job import BuildOutcome, Step
from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trtc.engines.tensorrt.job import BuildJob

CHILD = "from trtc.engines.tensorrt.worker import main; main()"
_LAST_LINES = 3


def run_job(job: BuildJob, log: Path, tell: Callable[[str], None], child: str = CHILD) -> BuildOutcome:
    """Run one job.

    Args:
        job: what to build.
        log: file for what the library prints past its logger.
        tell: told what the builder is at.
        child: the program.

    Raises:
        EngineError: when the process ends without an answer; the message says how it ended, and what it was at.
        HostError: when the process cannot be started.
    """
    step = "starting"
    outcome: BuildOutcome | None = None
    with log.open("wb") as noise:
        try:
            process = subprocess.Popen(  # noqa: S603 (this interpreter, and a module of ours)
                [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=noise
            )
        except OSError as error:
            raise HostError(f"the process that builds cannot be started: {error}") from error
        with process:
            try:
                for answer in _answers(process, job):
                    if isinstance(answer, BuildOutcome):
                        outcome = answer
                    else:
                        step = answer.step
                        tell(step)
            except BaseException:
                process.kill()
                raise
    if outcome is None or process.returncode:
        raise EngineError(_ending(process.returncode, step, log))
    return outcome


def _answers(process: subprocess.Popen[bytes], job: BuildJob) -> Iterator[BuildOutcome | Step]:
    """Give the job to the process, and yield what it answers, line by line."""
    given, answers = process.stdin, process.stdout
    if given is None or answers is None:
        raise HostError("the process that builds has no pipes; report this")
    with suppress(BrokenPipeError), given:
        given.write(msgspec.json.encode(job))
    for line in answers:
        yield msgspec.json.decode(line, type=BuildOutcome | Step)


def _ending(code: int, step: str, log: Path) -> str:
    """Say how a process ended that gave no answer."""
    how = f"with signal {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    said = f"; it printed last: {' | '.join(lines[-_LAST_LINES:])}" if lines else ""
    return f"the process that builds ended {how}, while {step}{said}"
