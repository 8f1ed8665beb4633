"""Build the engines of a plan, compare each with its references, and measure how to run them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import file_digest
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace as replace_fields

from trtc.compiler.measure import Measured, MeasureOptions, measure
from trtc.compiler.probes.subject import reduced
from trtc.compiler.runnable import why_not_here
from trtc.compiler.scratch import NOT_MEASURED, Trial, scratch_bytes
from trtc.compiler.shape_values import shape_values
from trtc.compiler.tolerance import Tolerance
from trtc.compiler.verify import Padding, VerifyOptions, verify_engine
from trtc.engines.build import EngineRequest
from trtc.engines.layout import plan_layout
from trtc.engines.manifest import BlobFile, EngineRecord, Execution, ProfileMemory, Verification
from trtc.engines.opening import Opening
from trtc.engines.registry import backend_named
from trtc.engines.target import parse_targets
from trtc.profiles import CheckError, sizes_text

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.compiler.analysis import Analysis
    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Setting
    from trtc.compiler.plan import Plan
    from trtc.engines.build import BuiltEngine, ValueBounds
    from trtc.engines.manifest import CostRecord, Evidence
    from trtc.engines.protocol import Engine
    from trtc.engines.target import Target


class EngineDiffersError(CheckError):
    """An engine gave other answers than the model. Exit code 1."""


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
        built = _build(target, model, analysis, _folder(setting, f"engine-{i}"), setting)
        for note in built.notes:
            progress.note(note)
        record = _record(target, built, _memory(analysis, built.scratch_bytes))
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
        opener = Opener(target, built, record, analysis.plan)
        try:
            verification = _verify(opener.open(1), analysis, padding, target.text, setting)
        except EngineDiffersError as error:
            if not built.fused:
                raise
            progress.note(f"the graph for target {target.text} is left as it is: rewritten, {error}")
            as_is = replace(setting, options=replace(options, fuse="none"))
            built = _build(target, model, analysis, _folder(setting, f"engine-{i}-as-is"), as_is)
            record = replace_fields(_record(target, built, record.memory), cost=record.cost)
            opener = Opener(target, built, record, analysis.plan)
            verification = _verify(opener.open(1), analysis, padding, target.text, setting)
        files |= built.files
        record = replace_fields(record, verification=verification, verified=any(v.passed for v in verification))
        own = built.requirements.device != ""
        figures = _planned_figures(analysis, target)
        if figures is None and (measured is None or own):
            progress.stage(f"measuring the engine for target {target.text}" if own else "measuring")
            wanted = MeasureOptions(options.mode, options.measure_s, setting.threads)
            figures = measure(opener.open, analysis.subject, analysis.plan.padding, wanted)
        if figures is not None:
            record = replace_fields(record, execution=figures.execution if own else None)
            measured = measured or figures
        if options.measure_s > 0 and measured is not None and not own:
            scratch = _scratch(opener, analysis, measured, setting.folder)
            record = replace_fields(record, memory=_memory(analysis, scratch))
        records.append(record)
    return Constructed(tuple(records), files, measured or Measured(_unmeasured(analysis, options), ()))


def open_provisional(model: Model, analysis: Analysis, setting: Setting, target: Target) -> Opener:
    """Build the engine of one target to measure with, before the ladder is known; nothing of it is kept.

    Raises:
        EngineError: the target refused the model.
    """
    built = _build(target, model, analysis, _folder(setting, "engine-to-measure"), setting)
    return Opener(target, built, _record(target, built, ()), analysis.plan)


def _cost(analysis: Analysis, target: Target) -> CostRecord | None:
    planning = analysis.planning
    return planning.cost if planning is not None and planning.target == target.text else None


def _planned_figures(analysis: Analysis, target: Target) -> Measured | None:
    """How planning measured that this target runs; None where it did not."""
    planning = analysis.planning
    return planning.measured if planning is not None and planning.target == target.text else None


class Opener:
    """Opens an engine from its built files, as the runtime will from a bundle."""

    def __init__(self, target: Target, built: BuiltEngine, record: EngineRecord, plan: Plan) -> None:
        self._backend = backend_named(target.backend)
        self._opening = Opening(
            files=built.files,
            record=record,
            signature=plan.signature,
            ladder=plan.ladder,
            allow_plugins=True,  # whoever builds with --plugin has named them
        )
        self.entry = built.files[built.entry]

    def open(self, threads: int, *, spinning: bool = True) -> Engine:
        """Open the engine with a number of threads for each call."""
        return self._backend.load(replace_fields(self._opening, threads=threads, spinning=spinning))


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
    return replace_fields(record, verification=(nothing,), execution=_unmeasured(analysis, options))


def _unmeasured(analysis: Analysis, options: BuildOptions) -> Execution:
    """Decide how engines run that could not be measured: kernels are chosen for buckets, so padding up wins there."""
    if options.mode == "exact" or not analysis.plan.padding:
        why = "as asked" if options.mode == "exact" else "nothing may be padded up to a bucket"
        return Execution(mode="exact", reason=f"{why}; nothing was measured")
    why = "as asked" if options.mode == "bucket" else "kernels and graphs are prepared for each bucket"
    return Execution(mode="bucket", reason=f"{why}; nothing was measured")


def _folder(setting: Setting, name: str) -> Path:
    work = setting.folder / name
    work.mkdir()
    return work


def _build(target: Target, model: Model, analysis: Analysis, work: Path, setting: Setting) -> BuiltEngine:
    request = EngineRequest(
        model_path=model.path,
        folder=work,
        signature=analysis.plan.signature,
        ladder=analysis.plan.ladder,
        threads=setting.threads,
        target=target,
        builder=setting.options.builder,
        shape_values=_shape_values(target, analysis, setting),
        tell=setting.progress.detail,
        fuse=setting.options.fuse,
    )
    built: BuiltEngine = backend_named(target.backend).build_module().build_engine(request)
    return built


def _verify(
    engine: Engine, analysis: Analysis, padding: Padding, target: str, setting: Setting
) -> tuple[Verification, ...]:
    options = setting.options
    names = " and ".join(reference.name for reference in analysis.references)
    setting.progress.stage(f"comparing the engine for target {target} with {names}")
    tolerance = Tolerance(options.atol, options.rtol)
    verify = VerifyOptions(tolerance=tolerance, seed=options.seed, budget_s=options.verify_s)
    try:
        found = verify_engine(engine, analysis.subject, analysis.references, padding, verify)
    finally:
        engine.close()
    if failed := [v for v in found if v.ran and not v.passed]:
        raise EngineDiffersError("; ".join(difference_text(v, target) for v in failed[:5]))
    if missing := [v for v in found if not v.ran and v.reference == analysis.references[0].name]:
        raise EngineDiffersError(
            f"the engine for target {target} could not be compared with the model in profile {missing[0].profile}: "
            f"{missing[0].detail}; allow more time with --verify-seconds, or give samples"
        )
    if analysis.unavailable:
        found = (
            *found,
            Verification(
                profile="*",
                mode="exact",
                reference="onnx reference evaluator",
                ran=False,
                passed=False,
                runs=0,
                detail=analysis.unavailable,
            ),
        )
    return found


def difference_text(verification: Verification, target: str) -> str:
    """Say where an engine and a reference part, for an error."""
    worst = verification.worst
    where = f"profile {verification.profile}, {verification.mode}, against {verification.reference}"
    if worst is None:
        return f"the engine for target {target} differs ({where}): {verification.detail}"
    return (
        f"the engine for target {target} differs ({where}): output {worst.output!r} by {worst.max_abs:.3g} at "
        f"{sizes_text(worst.sizes)}, allowed is {worst.allowed:.2g}; widen --atol or --rtol if that is expected, "
        "otherwise report the model"
    )


def _shape_values(target: Target, analysis: Analysis, setting: Setting) -> tuple[dict[str, ValueBounds], ...]:
    if not target.needs_ranges:
        return ()
    return shape_values(analysis.found.values, analysis.plan.ladder, setting.options)


def _record(target: Target, built: BuiltEngine, memory: tuple[ProfileMemory, ...]) -> EngineRecord:
    """Describe an engine about which nothing was shown yet."""
    blobs = []
    for path, file in built.files.items():
        with file.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
        blobs.append(BlobFile(path=path, size_bytes=file.stat().st_size, sha256=digest))
    return EngineRecord(
        name=target.name,
        backend=target.backend,
        target=target.text,
        precision=built.precision,
        entry=built.entry,
        files=tuple(blobs),
        requirements=built.requirements,
        verified=False,
        memory=memory,
        options=built.options,
        plugins=built.plugins,
    )


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
