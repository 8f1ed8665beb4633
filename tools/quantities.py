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


class FiniteRange(click.FloatRange):
    """A finite number of at least ``min``; click's own range takes NaN and infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number; write one such as 0, 0.5 or 1e-3", param, ctx)
        return number
