"""Build for the null backend: there is nothing to build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.build import BuiltEngine
from trtc.engines.manifest import Requirements

if TYPE_CHECKING:
    from trtc.engines.build import EngineRequest


def build_engine(request: EngineRequest) -> BuiltEngine:
    """Return an engine without files."""
    del request
    return BuiltEngine("", {}, Requirements(), "none")
