"""Build the engines of a plan, compare each with its references, and measure how to run them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace as replace_fields

from trtc.compiler.engine_job import EngineJob, Opener, agreeing, record_of
from trtc.compiler.measure import Measured, MeasureOptions, measure, unmeasured
from trtc.compiler.probes.subject import reduced
from trtc.compiler.runnable import why_not_here
from trtc.compiler.scratch import NOT_MEASURED, Trial, scratch_bytes
from trtc.compiler.verify import Padding
from trtc.engines.layout import plan_layout
from trtc.engines.manifest import EngineRecord, Execution, ProfileMemory, Verification
from trtc.engines.registry import backend_named
from trtc.engines.target import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.compiler.analysis import Analysis
    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Setting
    from trtc.engines.manifest import CostRecord, Evidence
    from trtc.engines.target import Target


@dataclass(frozen=True, slots=True)
class Constructed:
    """Engines that passed, their files, and how to run them.

    Attributes:
        records: one for each target, in order of preference.
        files: the file of each blob, by its path in the bundle.
        measured: how the first engine that computes runs best.
    """

    records: tuple[EngineRecord, ...]
    files: dict[str, Path]
    measured: Measured


def construct(model: Model, analysis: Analysis, evidence: tuple[Evidence, ...], setting: Setting) -> Constructed:
    """Build, verify and measure.

    Raises:
        EngineError: a target refused the model.
        EngineDiffersError: an engine gave other answers; nothing is kept.
    """
    records: list[EngineRecord] = []
    files: dict[str, Path] = {}
    measured: Measured | None = None
    padding = Padding(analysis.plan.padding, evidence)
    options, progress = setting.options, setting.progress
    for i, target in enumerate(parse_targets(options.targets)):
        progress.stage(f"building the engine for target {target.text}")
        job = EngineJob(target, model, analysis, padding, setting)
        built = job.build(f"engine-{i}")
        for note in built.notes:
            progress.note(note)
        record = record_of(target, built, _memory(analysis, built.scratch_bytes))
        if not backend_named(target.backend).computes:
            records.append(record)
            files |= built.files
            continue
        record = replace_fields(record, cost=_cost(analysis, target))
        if missing := why_not_here(built.requirements):
            progress.note(f"the engine for target {target.text} was not verified: {missing}")
            records.append(_unverified(record, missing, analysis, options))
            files |= built.files
            continue
        built, verification = agreeing(job, built)
        record = replace_fields(
            record_of(target, built, record.memory),
            cost=record.cost,
            verification=verification,
            verified=any(v.passed for v in verification),
        )
        files |= built.files
        opener = Opener(target, built, record, analysis.plan)
        own = built.requirements.device != ""
        figures = _planned_figures(analysis, target)
        if figures is None and (measured is None or own):
            progress.stage(f"measuring the engine for target {target.text}" if own else "measuring")
            wanted = MeasureOptions(
                options.mode, options.measure_s, setting.threads, callers=options.callers, device=own
            )
            figures = measure(opener.open, analysis.subject, analysis.plan.padding, wanted, progress)
        if figures is not None:
            record = replace_fields(record, execution=figures.execution if own else None)
            measured = measured or figures
        if options.measure_s > 0 and measured is not None and not own:
            scratch = _scratch(opener, analysis, measured, setting.folder)
            record = replace_fields(record, memory=_memory(analysis, scratch))
        records.append(record)
    return Constructed(tuple(records), files, measured or Measured(_unmeasured(analysis, options, device=False), ()))


def open_provisional(model: Model, analysis: Analysis, setting: Setting, target: Target) -> Opener:
    """Build the engine of one target to measure with, before the ladder is known; nothing of it is kept.

    Raises:
        EngineError: the target refused the model.
    """
    built = EngineJob(target, model, analysis, Padding((), ()), setting).build("engine-to-measure")
    return Opener(target, built, record_of(target, built, ()), analysis.plan)


def _cost(analysis: Analysis, target: Target) -> CostRecord | None:
    planning = analysis.planning
    return planning.cost if planning is not None and planning.target == target.text else None


def _planned_figures(analysis: Analysis, target: Target) -> Measured | None:
    """How planning measured that this target runs; None where it did not."""
    planning = analysis.planning
    return planning.measured if planning is not None and planning.target == target.text else None


def _unverified(record: EngineRecord, missing: str, analysis: Analysis, options: BuildOptions) -> EngineRecord:
    """Record an engine that this machine cannot run: nothing was shown about it, and loading refuses it."""
    nothing = Verification(
        profile="*",
        mode="exact",
        reference=analysis.references[0].name,
        ran=False,
        passed=False,
        runs=0,
        detail=missing,
    )
    device = record.requirements.device != ""
    return replace_fields(record, verification=(nothing,), execution=_unmeasured(analysis, options, device=device))


def _unmeasured(analysis: Analysis, options: BuildOptions, *, device: bool) -> Execution:
    """Decide how engines run that could not be measured: kernels are chosen for buckets, so padding up wins there."""
    if options.mode == "exact" or not analysis.plan.padding:
        why = "as asked" if options.mode == "exact" else "nothing may be padded up to a bucket"
        return unmeasured("exact", f"{why}; nothing was measured", device=device)
    why = "as asked" if options.mode == "bucket" else "kernels and graphs are prepared for each bucket"
    return unmeasured("bucket", f"{why}; nothing was measured", device=device)


def _memory(analysis: Analysis, scratch: dict[str, int]) -> tuple[ProfileMemory, ...]:
    """Planned bytes of each closed profile, and what was measured beside them."""
    found = []
    for profile in analysis.plan.ladder.profiles:
        bucket = {s: size for s, size in profile.bucket.items() if size is not None}
        if len(bucket) == len(profile.ranges):
            layout = plan_layout(analysis.plan.signature, bucket)
            found.append(
                ProfileMemory(
                    profile=profile.name,
                    slot_bytes=layout.size_bytes,
                    scratch_bytes=scratch.get(profile.name, NOT_MEASURED),
                )
            )
    return tuple(found)


def _scratch(opener: Opener, analysis: Analysis, measured: Measured, folder: Path) -> dict[str, int]:
    """Measure what the library holds inside, profile by profile from small to large."""
    trials = []
    rng = np.random.default_rng(0)
    signature = analysis.plan.signature
    for profile in analysis.plan.ladder.profiles:
        bucket = {s: size for s, size in profile.bucket.items() if size is not None}
        if len(bucket) < len(profile.ranges):
            continue
        feeds = analysis.subject.values.feeds(bucket, rng)
        signature = reduced(analysis.plan.signature, feeds)
        if not all(spec.in_memory for spec in signature.inputs):
            return {}
        place = folder / f"scratch-{profile.name}"
        place.mkdir()
        for i, spec in enumerate(signature.inputs):
            np.save(place / f"{i}.npy", feeds[spec.name], allow_pickle=False)
        trials.append(Trial(profile.name, bucket, str(place)))
    trials.sort(key=lambda t: plan_layout(signature, t.sizes).size_bytes)
    return scratch_bytes(opener.entry, measured.execution.threads, signature, trials) if trials else {}
