"""Whether the building machine can run an engine: one that it cannot run is recorded as not verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.distributions import find_distribution
from trtc.engines.gpu import survey_gpus
from trtc.engines.manifest import Requirements
from trtc.engines.registry import backend_named
from trtc.engines.target import parse_targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.target import Target


def target_to_measure(texts: Sequence[str]) -> tuple[Target, str]:
    """Return the target whose costs a ladder is planned with: the first that can be measured on this machine.

    Where none can, it is the first, with the reason why it cannot.
    """
    targets = parse_targets(texts)
    reasons = {target.text: _why_not_measured(target) for target in targets}
    found = next((target for target in targets if not reasons[target.text]), targets[0])
    return found, reasons[found.text]


def _why_not_measured(target: Target) -> str:
    backend = backend_named(target.backend)
    if not backend.computes:
        return "it computes nothing"
    device = backend.device or ("cuda" if "provider" in target.options else "")
    needs = Requirements(device=device, library=backend.needs, compute_capabilities=target.compute_capabilities)
    return why_not_here(needs)


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
