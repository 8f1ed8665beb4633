"""What a graph does to a number on its way: ``mul * x`` plus something between two bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Affine:
    """A number that an input value became.

    Attributes:
        mul: factor of the input value.
        add_low, add_high: between these lies what was added.
        share: how many unknown parts the number is the sum of.
    """

    mul: float = 1.0
    add_low: float = 0.0
    add_high: float = 0.0
    share: int = 1

    def negated(self) -> Affine:
        """Return what ``Neg`` makes of it."""
        return Affine(-self.mul, -self.add_high, -self.add_low, self.share)

    def combined(self, op: str, constant: np.ndarray[Any, Any] | None, *, first: bool) -> Affine | None:
        """Return what an operator makes of it; None where that is no such number.

        Args:
            op: ``Add``, ``Sub`` or ``Mul``.
            constant: the other operand; None where it is not known.
            first: whether this number is the first operand.
        """
        if constant is None or constant.dtype.kind not in "iufb" or constant.size == 0:
            return Affine(self.mul, self.add_low, self.add_high, self.share * 2) if op == "Add" else None
        with np.errstate(over="ignore"):
            low, high = float(constant.astype(np.float64).min()), float(constant.astype(np.float64).max())
        if op == "Add":
            moved = Affine(self.mul, self.add_low + low, self.add_high + high, self.share)
        elif op == "Sub" and first:
            moved = Affine(self.mul, self.add_low - high, self.add_high - low, self.share)
        elif op == "Sub":
            moved = Affine(-self.mul, low - self.add_high, high - self.add_low, self.share)
        else:
            scaled = (self.add_low * low, self.add_low * high, self.add_high * low, self.add_high * high)
            moved = Affine(self.mul * max(low, high, key=abs), min(scaled), max(scaled), self.share)
        return moved
