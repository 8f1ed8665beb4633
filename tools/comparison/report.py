"""A comparison as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.tools.output import counted, print_line, print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.tools.comparison.localize import Parting
    from trtc.tools.comparison.result import ComparisonResult, OutputResult

COLUMNS = ("output", "result", "runs", "max abs", "max rel", "cosine", "worst at", "got", "expected", "NaN", "inf")
MAX_FAILURES = 3
NEAR = 3
"""Compared tensors that are shown before and after the one where two graphs part; ``--json`` has all."""


def show_comparison(result: ComparisonResult) -> None:
    """Print the worst of each output, then what ran where."""
    rows = [_row(name, results) for name, results in by_output(result).items()]
    if rows:
        print_table(f"{result.subject} against {result.against}", COLUMNS, rows)
    counts: dict[tuple[str, str], list[bool]] = {}
    for case in result.cases:
        counts.setdefault((case.profile, case.mode), []).append(case.passed and case.compared)
    ran = [(*way, len(passed), sum(passed)) for way, passed in counts.items()]
    if ran:
        print_table("", ("profile", "mode", "requests", "agree"), ran)
    unpadded = [c for c in result.cases if c.mode == "bucket" and c.run_sizes == c.sizes]
    if unpadded:
        print_text(
            f"{counted(len(unpadded), 'request')} of padded ways ran at their exact sizes: the values lie outside of "
            "those that padding was proved for"
        )
    if refused := [case for case in result.cases if case.refused]:
        say = "says" if len(refused) == 1 else "say"
        print_text(f"{counted(len(refused), 'request')} {say} nothing: {refused[0].refused}")


def show_parting(parting: Parting) -> None:
    """Print where two graphs part."""
    worst = next(r for r in parting.seen if r.output == parting.tensor)
    print_line(f"they part at tensor {parting.tensor!r}: {worst.reason}")
    print_line(f"  the bundle makes it with {parting.ours}, the other side with {parting.theirs}")
    listed = ", ".join(map(repr, parting.inputs[:6])) + (" and more" if len(parting.inputs) > 6 else "")  # noqa: PLR2004
    print_line(f"  everything it is made from agrees: {listed or 'inputs and weights only'}")
    if parting.beyond:
        print_line(f"  between these and it {len(parting.beyond)} tensors exist on one side only (fused nodes)")
    at = next(i for i, r in enumerate(parting.seen) if r.output == parting.tensor)
    near = parting.seen[max(0, at - NEAR) : at + NEAR + 1]
    rows = [(r.output, "agrees" if r.passed else "DIFFERS", _number(r.max_abs)) for r in near]
    title = f"{len(parting.seen)} tensors were compared in {parting.runs} runs of each; those beside it"
    print_table(title, ("tensor", "result", "max abs"), rows)


def by_output(result: ComparisonResult) -> dict[str, list[OutputResult]]:
    """Group the results of all requests by output."""
    found: dict[str, list[OutputResult]] = {}
    for case in result.cases:
        for output in case.outputs:
            found.setdefault(output.output, []).append(output)
    return found


def worst_of(results: Sequence[OutputResult]) -> OutputResult:
    """Return the worst result of one output: a failed one before others, then the largest difference."""
    return max(results, key=lambda r: (not r.passed, r.max_abs if r.max_abs is not None else 0.0))


def failure_text(result: ComparisonResult) -> str:
    """Say what failed, in one line."""
    failures = result.failures
    more = f"; and {len(failures) - MAX_FAILURES} more" if len(failures) > MAX_FAILURES else ""
    return "; ".join(failures[:MAX_FAILURES]) + more


def _row(name: str, results: Sequence[OutputResult]) -> tuple[object, ...]:
    worst = worst_of(results)
    cosines = [r.cosine for r in results if r.cosine is not None]
    relative = [r.max_rel for r in results if r.max_rel is not None]
    nan, inf = (
        sum(sum(counts.values()) for counts in each) for each in ([r.nan for r in results], [r.inf for r in results])
    )
    return (
        name,
        "agrees" if all(r.passed for r in results) else "DIFFERS",
        len(results),
        _number(worst.max_abs),
        _number(max(relative, default=None)),
        "-" if not cosines else f"{min(cosines):.9f}",
        "-" if worst.where is None else str(list(worst.where)),
        _value(worst.got),
        _value(worst.expected),
        nan,
        inf,
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _value(value: object) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
