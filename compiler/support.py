"""What a build would support, and why not: every question is asked, none stops at the first answer that is no."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.compiler.analysis import analyse, read_declarations
from trtc.compiler.importer import load_model
from trtc.compiler.options import Setting
from trtc.compiler.prove import examine
from trtc.compiler.targets import problems_of, problems_text, refuse_options
from trtc.engines.host import this_host
from trtc.engines.layout import plan_layout
from trtc.engines.manifest import ProfileMemory
from trtc.engines.registry import backend_named
from trtc.engines.target import parse_targets
from trtc.profiles import ModelError, ProfileError
from trtc.profiles.grammar import require_closed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.analysis import Analysis
    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Progress
    from trtc.compiler.size_rule import SizeRule
    from trtc.engines.build import NodeProblem
    from trtc.engines.manifest import Evidence
    from trtc.engines.signature import Signature
    from trtc.profiles import Profile

OPEN_TARGET = "cpu"
"""A target that needs no ranges: what the model itself can do is found out with it."""


@dataclass(frozen=True, slots=True)
class TargetSupport:
    """Whether one target would serve the model as declared.

    Attributes:
        target: as ``--target`` calls it.
        installed: whether its library is there.
        needs_ranges: whether it refuses open maxima.
        supported: whether a build for it would go ahead.
        reason: why not; empty when it would.
        nodes: what the target's builder refuses, node by node.
    """

    target: str
    installed: bool
    needs_ranges: bool
    supported: bool
    reason: str
    nodes: tuple[NodeProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class Support:
    """The report.

    Attributes:
        targets: one verdict each.
        problem: why the model itself cannot be built for any target; empty otherwise.
        signature: with relations; None when the model has a problem.
        sizes: by symbol, sizes that run.
        profiles: that would be built.
        memory: planned bytes of each closed profile.
        evidence: of everything declared about padding, refuted claims included.
        notes: what a person should know.
    """

    targets: tuple[TargetSupport, ...]
    problem: str = ""
    signature: Signature | None = None
    sizes: dict[str, SizeRule] | None = None
    profiles: tuple[Profile, ...] = ()
    memory: tuple[ProfileMemory, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()


def check_support(model_path: Path, options: BuildOptions, progress: Progress) -> Support:
    """Find out what a build with these options would do; nothing is built or kept.

    Raises:
        UsageError: for wrong use, such as a missing file, unknown names or contradictory ranges.
        HostError: when the environment does not fit.
    """
    targets = parse_targets(options.targets)
    refuse_options(replace(options, targets=tuple(t.text for t in targets if backend_named(t.backend).installed)))
    with tempfile.TemporaryDirectory(prefix="trtc-check-") as work:
        progress.stage("loading the model")
        try:
            model = load_model(model_path, work_folder=Path(work) / "model", model_root=options.model_root)
        except ModelError as error:
            return Support(_targets((), options, str(error), {}), problem=str(error))
        progress.stage("asking the targets what they refuse")
        nodes = {target.text: problems_of(model, target, Path(work)) for target in targets}
        declared = read_declarations(model, replace(options, targets=(OPEN_TARGET,)))
        if all(nodes.values()):
            only = "no target can build this model, so nothing else was looked at"
            return Support(_targets(declared.profiles, options, "", nodes), notes=(*model.notes, only))
        setting = Setting(options, Path(work), options.threads or this_host().threads, progress)
        try:
            analysis = analyse(model, declared, setting)
        except ModelError as error:
            verdicts = _targets(declared.profiles, options, str(error), nodes)
            return Support(verdicts, problem=str(error), notes=model.notes)
        evidence = examine(analysis, setting)
    verdicts = _targets(analysis.plan.ladder.profiles, options, "", nodes)
    return _report(model, analysis, evidence, verdicts)


def _report(
    model: Model, analysis: Analysis, evidence: tuple[Evidence, ...], verdicts: tuple[TargetSupport, ...]
) -> Support:
    plan = analysis.plan
    second = (f"only ONNX Runtime would be compared with: {analysis.unavailable}",) if analysis.unavailable else ()
    return Support(
        targets=verdicts,
        signature=plan.signature,
        sizes=analysis.found.workable,
        profiles=plan.ladder.profiles,
        memory=planned_memory(plan.signature, plan.ladder.profiles),
        evidence=evidence,
        notes=(*model.notes, *analysis.found.notes, *second),
    )


def planned_memory(signature: Signature, profiles: tuple[Profile, ...]) -> tuple[ProfileMemory, ...]:
    """Return the planned bytes of each profile whose maxima are all closed."""
    found = []
    for profile in profiles:
        bucket = {s: size for s, size in profile.bucket.items() if size is not None}
        if len(bucket) == len(profile.ranges):
            found.append(ProfileMemory(profile=profile.name, slot_bytes=plan_layout(signature, bucket).size_bytes))
    return tuple(found)


def _targets(
    profiles: tuple[Profile, ...], options: BuildOptions, problem: str, nodes: Mapping[str, tuple[NodeProblem, ...]]
) -> tuple[TargetSupport, ...]:
    found = []
    for target in parse_targets(options.targets):
        backend = backend_named(target.backend)
        reasons = [problem] if problem else []
        if not backend.installed:
            reasons.append(f"{backend.needs} is not installed: {backend.install}")
        if target.needs_ranges:
            try:
                require_closed(profiles, target.text)
            except ProfileError as error:
                reasons.append(str(error))
        if refused := nodes.get(target.text, ()):
            reasons.append(problems_text(refused))
        found.append(
            TargetSupport(target.text, backend.installed, target.needs_ranges, not reasons, "; ".join(reasons), refused)
        )
    return tuple(found)
