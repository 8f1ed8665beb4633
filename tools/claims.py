"""What padding was asked for and what an experiment said of it, in one sentence: a verdict alone proves nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trtc.tools.output import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtc.engines.manifest import Evidence, Finding
    from trtc.profiles import PadRule


def rule_text(rule: PadRule) -> str:
    """Say how a rule pads: the side, and what each input is filled with."""
    if rule.side == "rows":
        return f"{rule.symbol} by repeating the last row"
    fills = "".join(f", {name}={fill}" for name, fill in rule.fills.items())
    return f"{rule.symbol} on the {rule.side}{fills}"


def claim_text(evidence: Evidence, rules: Iterable[PadRule]) -> str:
    """Say what was asked, how it ended, in how many runs, and what was seen.

    Args:
        evidence: of padding, or of rows.
        rules: that were declared; those of the symbols of the evidence are told.
    """
    worst = worst_of(evidence.findings)
    seen = (
        "" if worst is None
        else f", largest difference {worst.max_abs:.3g} in {worst.output} (allowed {worst.allowed:.3g})"
    )  # fmt: skip
    return f"{asked_text(evidence, rules)}: {verdict_text(evidence)} in {counted(evidence.runs, 'run')}{seen}"


def asked_text(evidence: Evidence, rules: Iterable[PadRule]) -> str:
    """Say what an experiment was to show; arguments as for ``claim_text``."""
    by_symbol = {rule.symbol: rule for rule in rules}
    tested = [rule_text(by_symbol[s]) if s in by_symbol else s for s in evidence.symbol.split(",")]
    return (
        f"rows along {evidence.symbol} are independent" if evidence.kind == "rows" else f"padding {'; '.join(tested)}"
    )


def verdict_text(evidence: Evidence) -> str:
    """Say in one word or a few how an experiment ended."""
    if evidence.accepted:
        return "shown"
    return "NOT neutral, accepted by the user" if evidence.deviation_accepted else "REFUSED"


def worst_of(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that used most of what it was allowed; None when there is none."""
    return max(findings, key=lambda f: (_share(f), f.allowed), default=None)


def _share(finding: Finding) -> float:
    """Return the part of the allowed difference that was used; NaN is worse than anything."""
    if math.isnan(finding.max_abs):
        return math.inf
    if not finding.allowed:
        return math.inf if finding.max_abs else 0.0
    return finding.max_abs / finding.allowed
