"""Prove what was declared: padding and rows. What is refuted stops the build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.probes.padding import probe_padding
from trtc.compiler.probes.rows import probe_rows
from trtc.compiler.probes.subject import ProbeOptions
from trtc.compiler.tolerance import Tolerance
from trtc.profiles import CheckError, sizes_text

if TYPE_CHECKING:
    from trtc.compiler.analysis import Analysis
    from trtc.compiler.options import Setting
    from trtc.engines.manifest import Evidence


class PaddingRefusedError(CheckError):
    """Padding that was declared changes answers. Exit code 1."""


def prove(analysis: Analysis, setting: Setting) -> tuple[Evidence, ...]:
    """Run the experiments that the declared padding needs.

    Returns:
        Evidence of everything that was accepted.

    Raises:
        PaddingRefusedError: naming outputs, sizes and errors of everything that was refuted.
    """
    found = examine(analysis, setting)
    if refused := [e for e in found if is_refused(e)]:
        raise PaddingRefusedError("; ".join(refusal_text(e) for e in refused))
    return found


def examine(analysis: Analysis, setting: Setting) -> tuple[Evidence, ...]:
    """Run the experiments that the declared padding needs, and return what they showed, refuted or not."""
    rules, options = analysis.plan.padding, setting.options
    if not rules:
        return ()
    setting.progress.stage("proving that padding does not change answers")
    probe = ProbeOptions(tolerance=Tolerance(options.atol, options.rtol), seed=options.seed)
    reference = analysis.references[0]
    found = [probe_rows(analysis.subject, reference, rule.symbol, probe) for rule in rules if rule.side == "rows"]
    found += probe_padding(analysis.subject, reference, rules, probe)
    return tuple(found)


def is_refused(evidence: Evidence) -> bool:
    """Tell whether evidence stops a build."""
    return not evidence.accepted and not evidence.deviation_accepted


def refusal_text(evidence: Evidence) -> str:
    """Say what a probe saw, for an error."""
    what = "rows along" if evidence.kind == "rows" else "padding"
    worst = [
        f"output {f.output!r} moved by {f.max_abs:.3g} at {sizes_text(f.sizes)}, allowed is {f.allowed:.2g}"
        for f in evidence.findings
        if not f.max_abs <= f.allowed
    ]
    reason = "; ".join(worst) or evidence.detail or "it could not be shown"
    remedy = (
        f"build without --pad {evidence.symbol}: sizes then run exact"
        if evidence.kind == "rows"
        else f"build without --pad {evidence.symbol} (sizes then run exact), try another --fill or side, or take the "
        "known deviation with --accept-padding-error"
    )
    return f"{what} {evidence.symbol} is refused: {reason}; {remedy}"
