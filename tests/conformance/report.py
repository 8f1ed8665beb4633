"""What a run of the suite found, for programs (JSON) and for people (a page)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pool import Row

SCHEMA = "trtc-conformance/1"
LIBRARIES = ("trtc", "onnx", "onnxruntime", "numpy")
VERDICTS = ("passed", "refused", "wrong", "failed", "crashed", "hung")


def as_json(rows: Sequence[Row], seconds: float) -> dict[str, Any]:
    """Return everything: versions, counts, one entry a test."""
    return {
        "schema": SCHEMA,
        "versions": {name: version(name) for name in LIBRARIES},
        "seconds": round(seconds, 1),
        "counts": {
            "tests": len(rows),
            "trtc": _verdicts(rows, "ours"),
            "onnxruntime": _verdicts(rows, "plain"),
        },
        "tests": [
            {
                "name": row.name,
                "operator": row.operator,
                "trtc": {"verdict": row.ours[0], "reason": row.ours[1]},
                "onnxruntime": {"verdict": row.plain[0], "reason": row.plain[1]},
                "seconds": row.seconds,
            }
            for row in rows
        ],
    }


def as_page(rows: Sequence[Row]) -> str:
    """Write the page; equal verdicts give equal text."""
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES[1:])
    ours, plain = _verdicts(rows, "ours"), _verdicts(rows, "plain")
    return "\n".join(
        [
            "# Conformance",
            "",
            f"The {len(rows)} node tests of onnx, each built into a bundle (importer, engine, comparison with",
            "the model), loaded from disk and run, beside plain ONNX Runtime on the CPU with its defaults. Both are",
            "compared with the test's own expected values at the test's own tolerances (bfloat16: two steps at least).",
            "The test's inputs are given to the build as a sample.",
            f"Made by `make conformance` with {versions}.",
            "",
            *_table(
                ("", *VERDICTS),
                [
                    ("trtc", *(ours[v] for v in VERDICTS)),
                    ("plain ONNX Runtime", *(plain[v] for v in VERDICTS)),
                ],
            ),
            "",
            "*refused*: an error with a reason before anything ran. *wrong*: an answer that is not the expected one.",
            "*failed*: an error while running. trtc refuses a model whose engine differs from it, so tests that plain",
            "ONNX Runtime gets wrong are often refused.",
            "",
            "## Passed by plain ONNX Runtime and not by trtc",
            "",
            *(_listed(row for row in rows if row.plain[0] == "passed" != row.ours[0]) or ["None."]),
            "",
            "## Wrong with trtc",
            "",
            "ONNX Runtime's own answers, which trtc passes on; plain ONNX Runtime gives them too.",
            "",
            *(_listed(row for row in rows if row.ours[0] == "wrong") or ["None."]),
            "",
            "## Refused by trtc",
            "",
            *_table(
                ("reason", "tests", "plain ONNX Runtime"),
                [
                    (reason, len(found), ", ".join(f"{n} {v}" for v, n in _verdicts(found, "plain").items()))
                    for reason, found in _by_reason(rows)
                ],
            ),
            "",
            "## By operator",
            "",
            *_table(("operator", "tests", *VERDICTS[:3]), _by_operator(rows)),
            "",
        ]
    )


def _verdicts(rows: Iterable[Row], side: str) -> Counter[str]:
    return Counter(getattr(row, side)[0] for row in rows)


def _by_operator(rows: Sequence[Row]) -> list[tuple[object, ...]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row.operator][row.ours[0] if row.ours[0] in VERDICTS[:2] else "wrong"] += 1
    return [
        (name, found.total(), *(found[v] or "" for v in VERDICTS[:3]))
        for name, found in sorted(counts.items(), key=lambda item: item[0].lower())
    ]


def _by_reason(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.ours[0] == "refused":
            found[_brief(row.ours[1])].append(row)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


_REASONS = (
    (r"(?:implementation|kernel) for (?P<what>\w+\(\d+\))", "ONNX Runtime has no kernel for {what} with these types"),
    (r"operators that cannot run: (?P<what>\S+):", "ONNX Runtime has no operator {what}"),
    (r"StringNormalizer::Locale", "this machine lacks the locale that StringNormalizer asks for"),
    (
        r"::(?:DeepCpu)?(?P<what>\w+?)(?:Op|Base|<T>)?::.*layout",
        "ONNX Runtime has no {what} with rows first (layout 1)",
    ),
    (r"draws random numbers", "two runs of equal inputs differ, since values are random"),
    (r"against ONNX Runtime CPU", "the engine differs from the model run without optimizations"),
    (r"against onnx reference evaluator", "ONNX Runtime differs from onnx's own evaluator"),
    (r"the reference failed: (?P<what>\w+) node", "ONNX Runtime opens the model, and fails when {what} runs"),
)
"""Reasons that differ in names only share a line of the table."""


def _brief(reason: str) -> str:
    for pattern, text in _REASONS:
        if match := re.search(pattern, reason, re.DOTALL):
            return text.format(**match.groupdict())
    return reason.split("; ", 1)[0][:160]


def _listed(rows: Iterable[Row]) -> list[str]:
    lines = []
    for row in rows:
        beside = "" if row.plain[0] == row.ours[0] else f" (plain ONNX Runtime: {row.plain[0]})"
        lines.append(f"- `{row.name}`: {' '.join(row.ours[1].split())[:300]}{beside}")
    return lines


def _table(head: Sequence[str], body: Sequence[Sequence[object]]) -> list[str]:
    rows = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in [head, *body]]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], f"| {' | '.join('---' if i == 0 else '---:' for i in range(len(head)))} |", *lines[1:]]
