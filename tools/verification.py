"""The comparisons of an engine with its model, as people read them: one row for each profile and mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles import sizes_text
from trtc.tools.claims import worst_of
from trtc.tools.output import print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.manifest import EngineRecord, Verification

COLUMNS = ("profile", "mode", "result", "runs", "largest difference", "allowed")


def show_verification(records: Sequence[EngineRecord]) -> None:
    """Print the worst of all references for each engine, profile and mode; ``--json`` has each reference apart."""
    for record in records:
        found: dict[tuple[str, str], list[Verification]] = {}
        for v in record.verification:
            found.setdefault((v.profile, v.mode), []).append(v)
        # A reference that never ran has no profile; the sentences below tell why.
        rows = [(*where, *_result(results)) for where, results in found.items() if where[0] != "*"]
        if rows:
            print_table(f"verification of engine {record.name}", COLUMNS, rows)
        if references := dict.fromkeys(v.reference for v in record.verification if v.ran):
            print_text(f"compared with {' and with '.join(references)}; the worst is shown")
        if unshown := unverified_text(record):
            print_text(f"engine {record.name}: {unshown}")
            continue
        for text in dict.fromkeys(_why(v) for v in record.verification if not (v.ran and v.passed)):
            print_text(text)


def unverified_text(record: EngineRecord) -> str:
    """Say that nothing was shown about an engine, why, and what to do; empty where something was."""
    if record.verified or any(v.ran for v in record.verification):
        return ""
    why = next((v.detail for v in record.verification if v.detail), "")
    if not why:
        return ""
    return f"built, not verified: {why}; run `trtc verify` where it can run"


def _result(results: Sequence[Verification]) -> tuple[object, ...]:
    ran = [v for v in results if v.ran]
    state = "not compared" if not ran else "passed" if all(v.passed for v in ran) else "DIFFERS"
    worst = worst_of(v.worst for v in ran if v.worst is not None)
    figures = ("-", "-") if worst is None else (f"{worst.max_abs:.3g}", f"{worst.allowed:.3g}")
    return state, sum(v.runs for v in ran), *figures


def _why(v: Verification) -> str:
    if not v.ran:
        return f"not compared with {v.reference}: {v.detail}"
    where = v.detail if v.worst is None else f"output {v.worst.output!r} at {sizes_text(v.worst.sizes)}"
    return f"profile {v.profile}, {v.mode}, differs from {v.reference}: {where}"
