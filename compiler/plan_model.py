"""Planning without building: everything that a build does up to the ladder."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.compiler.analysis import analyse, read_declarations
from trtc.compiler.importer import load_model
from trtc.compiler.options import Recorded, Setting, Silent
from trtc.compiler.planning import Planning, planned
from trtc.compiler.prove import prove
from trtc.engines.host import this_host
from trtc.profiles import UsageError

if TYPE_CHECKING:
    from trtc.compiler.options import BuildOptions, Progress
    from trtc.compiler.plan import Plan
    from trtc.engines.manifest import Evidence


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A plan for a model, and what it rests on.

    Attributes:
        model_sha256: of the source, by content.
        plan: signature, ladder, padding.
        planning: traffic, cost, curve, and how to run.
        evidence: of the padding, for this ladder.
        notes: what a person should know.
        measure_s: seconds that measuring had.
    """

    model_sha256: str
    plan: Plan
    planning: Planning
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...]
    measure_s: float


def plan_model(model_path: Path, options: BuildOptions, progress: Progress | None = None) -> PlannedModel:
    """Plan a ladder for traffic. Nothing is kept but what is returned.

    Args:
        model_path: an ``.onnx`` file.
        options: as for a build; ``options.plan`` names the traffic.
        progress: told what is going on.

    Raises:
        UsageError: wrong use, or no traffic.
        ModelError: the model is broken or not supported, or does not run at a size of the traffic.
        CheckError: padding was refused, or no ladder satisfies a budget.
    """
    recorded = Recorded(progress or Silent())
    with tempfile.TemporaryDirectory(prefix="trtc-plan-") as work:
        recorded.stage("loading the model")
        model = load_model(model_path, work_folder=Path(work) / "model", model_root=options.model_root)
        declared = read_declarations(model, options)
        if declared.traffic is None:
            raise UsageError("a plan is made from traffic; give --traffic FILE, which session.record_traffic writes")
        setting = Setting(options, Path(work), options.threads or this_host().threads, recorded)
        analysis = planned(model, analyse(model, declared, setting), declared, setting)
        evidence = prove(analysis, setting)
        if not isinstance(analysis.planning, Planning):
            raise TypeError("planned() returned an analysis without a plan")
        return PlannedModel(
            model.sha256,
            analysis.plan,
            analysis.planning,
            (analysis.found.evidence, *evidence),
            (*model.notes, *recorded.notes),
            options.measure_s,
        )
