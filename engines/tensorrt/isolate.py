"""Find the one profile or compute capability that a failed build fails for, by building with each of them alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trtc.engines.tensorrt.process import run_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trtc.engines.tensorrt.job import BuildJob, BuildOutcome, Failure


def isolate(
    job: BuildJob,
    failure: Failure,
    folder: Path,
    tell: Callable[[str], None],
    run: Callable[[BuildJob, Path, Callable[[str], None]], BuildOutcome] = run_job,
) -> tuple[str, Failure]:
    """Build again, with one compute capability at a time, then with one profile at a time.

    Args:
        job: that failed.
        failure: of it.
        folder: for engines that are thrown away, and for logs.
        tell: told what is tried.
        run: runs a job.

    Returns:
        What fails alone, in words, and its own failure; no words and the given failure where nothing is to blame
        alone: everything fails alike, or nothing fails alone.
    """
    if failure.stage != "build":
        return "", failure
    for parts in (_by_capability(job), _by_profile(job)):
        failed: dict[str, Failure] = {}
        tried = 0
        for i, (name, part) in enumerate(parts):
            tell(f"looking for what fails: {name} alone")
            output = folder / f"alone-{i}.plan"
            found = run(msgspec.structs.replace(part, output=str(output)), folder / f"alone-{i}.log", tell).failure
            output.unlink(missing_ok=True)
            tried += 1
            if found is not None:
                failed[name] = found
        if 0 < len(failed) < tried:
            names = " and ".join(failed)
            alone = "it fails alone" if len(failed) == 1 else "each fails alone"
            return f"{names}: {alone}, the others build", next(iter(failed.values()))
    return "", failure


def _by_capability(job: BuildJob) -> Iterator[tuple[str, BuildJob]]:
    """One job a compute capability. Which kernels exist does not depend on the ranges, so one profile is enough."""
    if len(job.compute_capabilities) > 1:
        for capability in job.compute_capabilities:
            yield (
                f"compute capability {capability}",
                msgspec.structs.replace(job, compute_capabilities=(capability,), profiles=job.profiles[:1]),
            )


def _by_profile(job: BuildJob) -> Iterator[tuple[str, BuildJob]]:
    if len(job.profiles) > 1:
        for profile in job.profiles:
            yield f"profile {profile.name}", msgspec.structs.replace(job, profiles=(profile,))
