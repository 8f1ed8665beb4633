"""Axis sizes as values: a number, a symbol, an expression over symbols, or "depends on the data".

An expression is a sum of products of *steps*. A step is what one strided layer, or a chain of them, does
to a size: ``(mul * size + add) // div``. Chains of strided layers collapse into one step, because floors of
nested divisions do.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Step:
    """``(mul * size(symbol) + add) // div``: one factor of a term."""

    symbol: str
    mul: int = 1
    add: int = 0
    div: int = 1

    def value(self, sizes: Mapping[str, int]) -> int:
        """Evaluate for concrete sizes, in elements."""
        return (self.mul * sizes[self.symbol] + self.add) // self.div

    def __str__(self) -> str:
        text = self.symbol if self.mul == 1 else f"{self.mul}*{self.symbol}"
        if self.add:
            text = f"{text}{self.add:+d}"
        if self.div == 1:
            return text
        return f"({text})//{self.div}" if self.add or self.mul != 1 else f"{text}//{self.div}"


@dataclass(frozen=True, slots=True)
class Term:
    """``coef`` times the product of ``steps``."""

    coef: int
    steps: tuple[Step, ...]

    def value(self, sizes: Mapping[str, int]) -> int:
        """Evaluate for concrete sizes, in elements."""
        return self.coef * prod(step.value(sizes) for step in self.steps)

    def __str__(self) -> str:
        if len(self.steps) == 1 and self.coef == 1:
            return str(self.steps[0])
        factors = [f"({step})" if step.add or step.div != 1 else str(step) for step in self.steps]
        return "*".join(factors if factors and self.coef == 1 else [str(self.coef), *factors])


@dataclass(frozen=True, slots=True)
class Expr:
    """A size that follows from symbols: the sum of ``terms`` plus ``const``."""

    terms: tuple[Term, ...]
    const: int = 0

    def value(self, sizes: Mapping[str, int]) -> int:
        """Evaluate for concrete sizes, in elements."""
        return sum(term.value(sizes) for term in self.terms) + self.const

    def __str__(self) -> str:
        text = "+".join(str(term) for term in self.terms) or "0"
        return f"{text}{self.const:+d}" if self.const else text


Dim: TypeAlias = int | str | Expr | None
"""A number; a symbol; an expression; or None where the size depends on the data (or nothing is known)."""

Sizes: TypeAlias = "Mapping[str, int]"
"""The size of each symbol, in elements."""


def dim_value(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    """Evaluate a dim; None stays None.

    Raises:
        KeyError: when a symbol of ``dim`` is not in ``sizes``.
    """
    if dim is None or isinstance(dim, int):
        return dim
    return sizes[dim] if isinstance(dim, str) else dim.value(sizes)


def dim_symbols(dim: Dim) -> frozenset[str]:
    """Name the symbols that a dim depends on."""
    if isinstance(dim, str):
        return frozenset([dim])
    if isinstance(dim, Expr):
        return frozenset(step.symbol for term in dim.terms for step in term.steps)
    return frozenset()


def dim_text(dim: Dim) -> str:
    """Write a dim for people; data-dependent sizes read ``?``."""
    return "?" if dim is None else str(dim)


def shape_text(dims: tuple[Dim, ...] | None) -> str:
    """Write a shape for people, such as ``[batch, (w+3)//8, 384]``; ``[...]`` when even the rank is unknown."""
    return "[...]" if dims is None else "[" + ", ".join(dim_text(dim) for dim in dims) + "]"


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Write sizes for people, such as ``batch=3, seq=17``."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "no symbols"
