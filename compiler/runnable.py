"""Whether the building machine can run an engine: one that it cannot run is recorded as not verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.distributions import find_distribution
from trtc.engines.gpu import survey_gpus

if TYPE_CHECKING:
    from trtc.engines.manifest import Requirements


def why_not_here(needs: Requirements) -> str:
    """Say why an engine cannot run on the machine that built it; empty when it can.

    Asking for a GPU initialises CUDA in this process; it is asked for engines that need one only.
    """
    if not needs.device:
        return ""
    if needs.library and find_distribution(needs.library) is None:
        return f"the building machine has no {needs.library}"
    survey = survey_gpus()
    if not survey.gpus:
        return f"the building machine has no GPU that can be used: {survey.reason}"
    there = [gpu.compute_capability for gpu in survey.gpus]
    if needs.compute_capabilities and not set(there) & set(needs.compute_capabilities):
        built = ", ".join(needs.compute_capabilities)
        return f"the building machine has {', '.join(there)}, the engine is built for {built}"
    return ""
