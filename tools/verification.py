"""The comparisons of an engine with its model, as people read them: one row for each profile and mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles import sizes_text
from trtc.tools.claims import worst_of
from trtc.tools.output import print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtc.engines.manifest import EngineRecord, Finding, Verification

COLUMNS = ("profile", "mode", "result", "runs", "largest difference", "allowed")


def show_verification(records: Sequence[EngineRecord]) -> None:
    """Print the worst of all references for each engine, profile and mode; ``--json`` has each reference apart."""
    for record in records:
        if rows := [(*where, *figures) for where, figures, _ in worst_results(record)]:
            print_table(f"verification of engine {record.name}", COLUMNS, rows)
        for text in verification_texts(record):
            print_text(text)


def worst_results(
    record: EngineRecord,
) -> Iterator[tuple[tuple[str, str], tuple[str, int, str, str], Finding | None]]:
    """Yield profile and mode; result, runs, difference and what was allowed; and the worst of all references."""
    found: dict[tuple[str, str], list[Verification]] = {}
    for v in record.verification:
        found.setdefault((v.profile, v.mode), []).append(v)
    for where, results in found.items():
        if where[0] != "*":  # a reference that never ran has no profile; the sentences tell why
            ran = [v for v in results if v.ran]
            state = "not compared" if not ran else "passed" if all(v.passed for v in ran) else "DIFFERS"
            worst = worst_of(v.worst for v in ran if v.worst is not None)
            figures = ("-", "-") if worst is None else (f"{worst.max_abs:.3g}", f"{worst.allowed:.3g}")
            yield where, (state, sum(v.runs for v in ran), *figures), worst


def verification_texts(record: EngineRecord) -> list[str]:
    """Say with what an engine was compared, and why it was not, or did not pass."""
    said = []
    if references := dict.fromkeys(v.reference for v in record.verification if v.ran):
        said.append(f"compared with {' and with '.join(references)}; the worst is shown")
    if unshown := unverified_text(record):
        return [*said, f"engine {record.name}: {unshown}"]
    return [*said, *dict.fromkeys(_why(v) for v in record.verification if not (v.ran and v.passed))]


def verified_text(record: EngineRecord) -> str:
    """Say in a word whether an engine was compared; a null engine never is."""
    return "yes" if record.verified else "-" if record.backend == "null" else "not yet"


def unverified_text(record: EngineRecord) -> str:
    """Say that nothing was shown about an engine, why, and what to do; empty where something was."""
    if record.verified or any(v.ran for v in record.verification):
        return ""
    why = next((v.detail for v in record.verification if v.detail), "")
    if not why:
        return ""
    return f"built, not verified: {why}; run `trtc verify` where it can run"


def _why(v: Verification) -> str:
    if not v.ran:
        return f"not compared with {v.reference}: {v.detail}"
    where = v.detail if v.worst is None else f"output {v.worst.output!r} at {sizes_text(v.worst.sizes)}"
    return f"profile {v.profile}, {v.mode}, differs from {v.reference}: {where}"
