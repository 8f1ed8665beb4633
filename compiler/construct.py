"""Build the engines of a plan, compare each with its references, and measure how to run them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import file_digest
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trtc.compiler.measure import Measured, MeasureOptions, measure
from trtc.compiler.probes.subject import reduced
from trtc.compiler.scratch import NOT_MEASURED, Trial, scratch_bytes
from trtc.compiler.tolerance import Tolerance
from trtc.compiler.verify import Padding, VerifyOptions, verify_engine
from trtc.engines.build import EngineRequest
from trtc.engines.layout import plan_layout
from trtc.engines.manifest import BlobFile, EngineRecord, Execution, ProfileMemory, Verification
from trtc.engines.opening import Opening
from trtc.engines.registry import backend_for_target
from trtc.profiles import CheckError, sizes_text

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.compiler.analysis import Analysis
    from trtc.compiler.model import Model
    from trtc.compiler.options import Setting
    from trtc.compiler.plan import Plan
    from trtc.engines.build import BuiltEngine
    from trtc.engines.manifest import CostRecord, Evidence
    from trtc.engines.protocol import Engine
    from trtc.engines.registry import Backend


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
    for target in options.targets:
        backend = backend_for_target(target)
        progress.stage(f"building the engine for target {target}")
        work = setting.folder / target
        work.mkdir()
        built = _build(backend, model, analysis, work, setting.threads)
        files |= built.files
        if not backend.computes:
            records.append(_record(backend, built, (), _memory(analysis, {})))
            continue
        opener = Opener(backend, built, analysis.plan)
        verification = _verify(opener.open(1), analysis, padding, target, setting)
        if measured is None and analysis.planning is not None and analysis.planning.target == target:
            measured = analysis.planning.measured
        if measured is None:
            progress.stage("measuring")
            wanted = MeasureOptions(options.mode, options.measure_s, setting.threads)
            measured = measure(opener.open, analysis.subject, analysis.plan.padding, wanted)
        scratch = _scratch(opener, analysis, measured, setting.folder) if options.measure_s > 0 else {}
        record = _record(backend, built, verification, _memory(analysis, scratch))
        records.append(msgspec.structs.replace(record, cost=_cost(analysis, target)))
    fallback = Measured(Execution(mode="bucket" if options.mode == "bucket" else "exact"), ())
    return Constructed(tuple(records), files, measured or fallback)


def open_provisional(model: Model, analysis: Analysis, setting: Setting, target: str) -> Opener:
    """Build the engine of one target to measure with, before the ladder is known; nothing of it is kept.

    Raises:
        EngineError: the target refused the model.
    """
    backend = backend_for_target(target)
    work = setting.folder / f"{target}-to-measure"
    work.mkdir()
    return Opener(backend, _build(backend, model, analysis, work, setting.threads), analysis.plan)


def _cost(analysis: Analysis, target: str) -> CostRecord | None:
    planning = analysis.planning
    return planning.cost if planning is not None and planning.target == target else None


class Opener:
    """Opens an engine from its built files, as the runtime will from a bundle."""

    def __init__(self, backend: Backend, built: BuiltEngine, plan: Plan) -> None:
        self._backend = backend
        self._opening = Opening(
            files=built.files, record=_record(backend, built, (), ()), signature=plan.signature, ladder=plan.ladder
        )
        self.entry = built.files[built.entry]

    def open(self, threads: int, *, spinning: bool = True) -> Engine:
        """Open the engine with a number of threads for each call."""
        return self._backend.load(replace(self._opening, threads=threads, spinning=spinning))


def _build(backend: Backend, model: Model, analysis: Analysis, work: Path, threads: int) -> BuiltEngine:
    request = EngineRequest(
        model_path=model.path,
        folder=work,
        signature=analysis.plan.signature,
        ladder=analysis.plan.ladder,
        threads=threads,
    )
    built: BuiltEngine = backend.build_module().build_engine(request)
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


def _record(
    backend: Backend, built: BuiltEngine, verification: tuple[Verification, ...], memory: tuple[ProfileMemory, ...]
) -> EngineRecord:
    blobs = []
    for path, file in built.files.items():
        with file.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
        blobs.append(BlobFile(path=path, size_bytes=file.stat().st_size, sha256=digest))
    return EngineRecord(
        name=backend.target,
        backend=backend.name,
        target=backend.target,
        precision=built.precision,
        entry=built.entry,
        files=tuple(blobs),
        requirements=built.requirements,
        verified=any(v.passed for v in verification),
        memory=memory,
        verification=verification,
        options=built.options,
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
