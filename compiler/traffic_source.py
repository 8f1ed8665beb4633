"""Traffic for a build: read from the files that the options name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trtc.profiles.traffic import traffic_from_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.plan_options import PlanOptions
    from trtc.profiles.traffic import Traffic


def traffic_for(options: PlanOptions, symbols: Sequence[str]) -> Traffic | None:
    """Read the traffic that a ladder is to be planned for; None where the options state the profiles.

    Args:
        options: which files.
        symbols: of the model.

    Raises:
        UsageError: for files that cannot be read, naming the line.
    """
    if not options.traffic:
        return None
    rows = [json.loads(line) for path in options.traffic for line in path.read_text().splitlines()]
    names = list(rows[0]["sizes"])
    return traffic_from_rows(names, [[r["sizes"][n] for n in names] for r in rows], [r["count"] for r in rows])
