"""The compiler: from an ONNX model and the sizes it will see to a verified bundle.

    from trtc.compiler import BuildOptions, ShapeOptions, build

    report = build(Path("model.onnx"), Path("model.trtc"), BuildOptions(shapes=ShapeOptions(dim=("batch=1..8",))))

Names are imported when they are first used: options can be read where the compiler's libraries are missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.on_demand import on_demand

if TYPE_CHECKING:
    from trtc.compiler.cache import BuildCache
    from trtc.compiler.engine_job import EngineDiffersError
    from trtc.compiler.importer import load_model
    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Progress, Silent
    from trtc.compiler.pipeline import BuildReport, build
    from trtc.compiler.plan_build import PlanOutdatedError, options_with_plan, plan_file_text
    from trtc.compiler.plan_model import PlannedModel, plan_model
    from trtc.compiler.plan_options import PlanOptions
    from trtc.compiler.prove import PaddingRefusedError
    from trtc.profiles.grammar import ShapeOptions

__all__ = [
    "BuildCache",
    "BuildOptions",
    "BuildReport",
    "EngineDiffersError",
    "Model",
    "PaddingRefusedError",
    "PlanOptions",
    "PlanOutdatedError",
    "PlannedModel",
    "Progress",
    "ShapeOptions",
    "Silent",
    "build",
    "load_model",
    "options_with_plan",
    "plan_file_text",
    "plan_model",
]

if not TYPE_CHECKING:  # else no name would be unknown
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "trtc.compiler.cache": ("BuildCache",),
            "trtc.compiler.engine_job": ("EngineDiffersError",),
            "trtc.compiler.importer": ("load_model",),
            "trtc.compiler.model": ("Model",),
            "trtc.compiler.options": ("BuildOptions", "Progress", "Silent"),
            "trtc.compiler.pipeline": ("BuildReport", "build"),
            "trtc.compiler.plan_build": ("PlanOutdatedError", "options_with_plan", "plan_file_text"),
            "trtc.compiler.plan_model": ("PlannedModel", "plan_model"),
            "trtc.compiler.plan_options": ("PlanOptions",),
            "trtc.compiler.prove": ("PaddingRefusedError",),
            "trtc.profiles.grammar": ("ShapeOptions",),
        },
    )
