"""One engine: built, compared with its references, and built again with less effort where it differs."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import file_digest
from typing import TYPE_CHECKING

from msgspec.structs import replace as replace_fields

from trtc.compiler.shape_values import shape_values
from trtc.compiler.tolerance import Tolerance
from trtc.compiler.verify import Padding, VerifyOptions, verify_engine
from trtc.engines.build import Effort, EngineRequest
from trtc.engines.manifest import BlobFile, EngineRecord, ProfileMemory, Verification
from trtc.engines.opening import Opening
from trtc.engines.registry import backend_named
from trtc.profiles import CheckError, sizes_text

if TYPE_CHECKING:
    from trtc.compiler.analysis import Analysis
    from trtc.compiler.model import Model
    from trtc.compiler.options import Setting
    from trtc.compiler.plan import Plan
    from trtc.engines.build import BuiltEngine, ValueBounds
    from trtc.engines.protocol import Engine
    from trtc.engines.target import Target


class EngineDiffersError(CheckError):
    """An engine gave other answers than the model. Exit code 1."""


class EngineUncomparedError(EngineDiffersError):
    """An engine could not be compared with the model in the time that it was given. Exit code 1."""


@dataclass(frozen=True, slots=True)
class EngineJob:
    """One engine to build.

    Attributes:
        target: what it is for.
        model, analysis: what it is made from.
        padding: what it is compared with.
        setting: of the build.
    """

    target: Target
    model: Model
    analysis: Analysis
    padding: Padding
    setting: Setting

    def build(self, folder: str, effort: Effort | None = None) -> BuiltEngine:
        """Build it in a new folder of this name.

        Raises:
            EngineError: the target refused the model.
        """
        work = self.setting.folder / folder
        work.mkdir()
        request = EngineRequest(
            model_path=self.model.path,
            folder=work,
            signature=self.analysis.plan.signature,
            ladder=self.analysis.plan.ladder,
            threads=self.setting.threads,
            target=self.target,
            builder=self.setting.options.builder,
            shape_values=_shape_values(self.target, self.analysis, self.setting),
            tell=self.setting.progress.detail,
            effort=effort or Effort(self.setting.options.fuse),
        )
        built: BuiltEngine = backend_named(self.target.backend).build_module().build_engine(request)
        return built


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


def agreeing(job: EngineJob, built: BuiltEngine) -> tuple[BuiltEngine, tuple[Verification, ...]]:
    """Compare an engine with the model; one that differs is built again with less effort, while there is any.

    Raises:
        EngineDiffersError: when the last one differs as well, or one could not be compared.
    """
    target, plan, progress = job.target, job.analysis.plan, job.setting.progress
    while True:
        opener = Opener(target, built, record_of(target, built, ()), plan)
        try:
            return built, _verify(opener.open(1), job.analysis, job.padding, target.text, job.setting)
        except EngineUncomparedError:
            raise
        except EngineDiffersError as error:
            less = built.less
            if less is None:
                raise
            progress.note(f"the engine for target {target.text} is built again without {less.left_out}: {error}")
            progress.stage(f"building the engine for target {target.text} again")
            built = job.build(f"{target.name}-{less.fuse}-{less.layout}", less)


def _verify(
    engine: Engine, analysis: Analysis, padding: Padding, target: str, setting: Setting
) -> tuple[Verification, ...]:
    options = setting.options
    names = " and ".join(reference.name for reference in analysis.references)
    setting.progress.stage(f"comparing the engine for target {target} with {names}")
    tolerance = Tolerance(options.atol, options.rtol)
    verify = VerifyOptions(
        tolerance=tolerance, seed=options.seed, budget_s=options.verify_s, tell=setting.progress.detail
    )
    try:
        found = verify_engine(engine, analysis.subject, analysis.references, padding, verify)
    finally:
        engine.close()
    if failed := [v for v in found if v.ran and not v.passed]:
        raise EngineDiffersError("; ".join(difference_text(v, target) for v in failed[:5]))
    if missing := [v for v in found if not v.ran and v.reference == analysis.references[0].name]:
        raise EngineUncomparedError(
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


def record_of(target: Target, built: BuiltEngine, memory: tuple[ProfileMemory, ...]) -> EngineRecord:
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
