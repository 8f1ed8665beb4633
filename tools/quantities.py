"""Quantities as people type them: memory such as ``512M``, and numbers that must be finite."""

from __future__ import annotations

import math
import re
from typing import Any

import click

_SIZE = re.compile(r"([0-9]{1,12})([KMGT]?)(?:i?B)?\Z", re.IGNORECASE)
_POWERS = {"K": 10, "": 20, "M": 20, "G": 30, "T": 40}


class MemorySize(click.ParamType[int]):
    """A number of bytes: suffix K, M, G or T in powers of 1024; MiB without one, as trtexec means it."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a size in bytes."""
        if isinstance(value, int):
            return value
        found = _SIZE.match(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no memory size; write 512M, 2G, 64K, or a number of MiB", param, ctx)
        return int(found[1]) << _POWERS[found[2].upper()]


class WholeRange(click.IntRange):
    """A whole number within bounds; what is none is refused with what is allowed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a whole number."""
        if isinstance(value, str):
            try:
                int(value)
            except ValueError:
                self.fail(f"{value!r} is not a whole number; write {_allowed(self)}", param, ctx)
        return int(super().convert(value, param, ctx))


class FiniteRange(click.FloatRange):
    """A finite number within bounds; click's own range takes NaN and infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number."""
        try:
            number = float(value)
        except ValueError:
            number, kind = math.nan, "number"
        else:
            kind = "finite number"
        if math.isnan(number) or number == math.inf:
            self.fail(f"{value!r} is not a {kind}; write {_allowed(self)}", param, ctx)
        return float(super().convert(value, param, ctx))


def _allowed(bounds: click.IntRange | click.FloatRange) -> str:
    """Say in words which numbers are allowed, such as ``one of at least 1``."""
    low, high = bounds.min, bounds.max
    if low is not None and high is not None:
        return f"one from {low:g} to {high:g}"
    if low is not None:
        return f"one above {low:g}" if bounds.min_open else f"one of at least {low:g}"
    return "one" if high is None else f"one of at most {high:g}"
