"""The compiler: from an ONNX model and the sizes it will see to a verified bundle.

    from trtc.compiler import BuildOptions, ShapeOptions, build

    report = build(Path("model.onnx"), Path("model.trtc"), BuildOptions(shapes=ShapeOptions(dim=("batch=1..8",))))

Names are imported when they are first used: options can be read where the compiler's libraries are missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "BuildCache": "trtc.compiler.cache",
    "BuildOptions": "trtc.compiler.options",
    "BuildReport": "trtc.compiler.pipeline",
    "EngineDiffersError": "trtc.compiler.engine_job",
    "Model": "trtc.compiler.model",
    "PaddingRefusedError": "trtc.compiler.prove",
    "PlanOptions": "trtc.compiler.plan_options",
    "PlanOutdatedError": "trtc.compiler.plan_build",
    "PlannedModel": "trtc.compiler.plan_model",
    "Progress": "trtc.compiler.options",
    "ShapeOptions": "trtc.profiles.grammar",
    "Silent": "trtc.compiler.options",
    "build": "trtc.compiler.pipeline",
    "load_model": "trtc.compiler.importer",
    "options_with_plan": "trtc.compiler.plan_build",
    "plan_file_text": "trtc.compiler.plan_build",
    "plan_model": "trtc.compiler.plan_model",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
