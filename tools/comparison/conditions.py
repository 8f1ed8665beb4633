"""The grammar of ``--fail-if``: ``p99>+5%, cosine<0.999, memory>+10%``.

A condition is a figure, one of ``>``, ``>=``, ``<``, ``<=``, and a number. A number with ``%`` is a change from the old
bundle to the new one; without, it is the figure of the new bundle, with a unit where the figure has one. Conditions
stand between commas; one that holds fails the comparison.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trtc.profiles import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["time", "bytes", "agreement"]
FIGURES: dict[str, Kind] = {
    **dict.fromkeys(("mean", "p50", "p90", "p95", "p99"), "time"),
    **dict.fromkeys(("memory", "size"), "bytes"),
    **dict.fromkeys(("cosine", "max_abs", "max_rel"), "agreement"),
}
ABOUT = {
    "mean": "mean time of a call",
    **{name: f"{name[1:]} percent of calls take at most this" for name in ("p50", "p90", "p95", "p99")},
    "memory": "planned memory, once loaded and run",
    "size": "bytes on disk",
    "cosine": "lowest similarity of any output, new against old",
    "max_abs": "largest difference of any output, new against old",
    "max_rel": "largest relative difference of any output, new against old",
}
_UNITS: dict[Kind, dict[str, float]] = {
    "time": {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0},
    "bytes": {"B": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30},
    "agreement": {"": 1.0},
}
_CONDITION = re.compile(r"\s*([^\s<>=]*)\s*(>=|<=|>|<|==|=|)\s*(.*?)\s*\Z", re.DOTALL)
_NUMBER = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(%|[A-Za-z]*)\Z")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    Attributes:
        text: as typed, for people.
        figure: what it is about.
        operator: ``>``, ``>=``, ``<`` or ``<=``.
        limit: for changes a share (0.05 for 5 percent), else seconds, bytes, or a plain number.
        relative: whether it is about the change from old to new.
    """

    text: str
    figure: str
    operator: str
    limit: float
    relative: bool

    @property
    def kind(self) -> Kind:
        """What the figure is measured in."""
        return FIGURES[self.figure]

    def holds(self, value: float) -> bool:
        """Tell whether a value meets the condition, which is a failure."""
        return {
            ">": value > self.limit,
            ">=": value >= self.limit,
            "<": value < self.limit,
            "<=": value <= self.limit,
        }[self.operator]


def read_conditions(texts: Sequence[str]) -> list[Condition]:
    """Read conditions.

    Args:
        texts: of ``--fail-if``, each with one or more.

    Raises:
        UsageError: for anything that does not follow the grammar; it says what does.
    """
    found: list[Condition] = []
    for text in texts:
        if len(text) > _LONGEST * 10:
            raise UsageError(f"--fail-if: {len(text)} characters; write a few conditions, such as 'p99>+5%'")
        for part in text.split(","):
            condition = _read(part)
            if any(c.figure == condition.figure and c.operator == condition.operator
                   and c.relative == condition.relative for c in found):  # fmt: skip
                raise UsageError(f"--fail-if: {condition.text!r} is about what another one says already; keep one")
            found.append(condition)
    return found


def _read(part: str) -> Condition:
    typed = part.strip()
    if not typed:
        raise UsageError("--fail-if: an empty condition; write FIGURE>NUMBER, such as 'p99>+5%,cosine<0.999'")
    match = _CONDITION.match(typed[:_LONGEST])
    figure, operator, number = match.groups() if match else ("", "", "")
    if figure not in FIGURES:
        raise UsageError(f"--fail-if: {typed!r}: {unknown_name('figure', figure, FIGURES)}")
    if operator not in (">", ">=", "<", "<="):
        raise UsageError(f"--fail-if: {typed!r} compares nothing; put >, >=, < or <= between figure and number")
    read = _NUMBER.match(number)
    kind = FIGURES[figure]
    if read is None:
        raise UsageError(f"--fail-if: {typed!r}: {number!r} is no number; write {_example(figure, kind)}")
    value, unit = float(read[1]), read[2]
    if unit == "%":
        if kind == "agreement":
            raise UsageError(
                f"--fail-if: {typed!r}: {figure} compares the two bundles already; write {_example(figure, kind)}"
            )
        return Condition(typed, figure, operator, value / 100, relative=True)
    units = _UNITS[kind]
    if unit not in units:
        raise UsageError(
            f"--fail-if: {typed!r} needs % (a change) or a unit ({', '.join(units)}); write {_example(figure, kind)}"
            if kind != "agreement"
            else f"--fail-if: {typed!r}: {figure} has no unit; write {_example(figure, kind)}"
        )
    if read[1][0] in "+-" and kind != "agreement":
        raise UsageError(
            f"--fail-if: {typed!r}: a sign is for a change; write {read[1]}%, or the figure without a sign"
        )
    return Condition(typed, figure, operator, value * units[unit], relative=False)


def _example(figure: str, kind: Kind) -> str:
    if kind == "time":
        return f"{figure}>+5% or {figure}>20ms"
    if kind == "bytes":
        return f"{figure}>+10% or {figure}>512M"
    return f"{figure}<0.999" if figure == "cosine" else f"{figure}>1e-3"
