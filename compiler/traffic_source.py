"""Traffic for a build: read from the files that the options name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.plan_options import PlanOptions
    from trtc.profiles import Dim
    from trtc.profiles.traffic import Traffic


def traffic_for(options: PlanOptions, dims: Mapping[str, tuple[Dim, ...] | None]) -> Traffic | None:
    """Read the traffic that a ladder is to be planned for; None where the options state the profiles.

    Args:
        options: which files.
        dims: of the model's inputs, by name.

    Raises:
        UsageError: for files that cannot be read, naming the line.
    """
    del options, dims
    return None
