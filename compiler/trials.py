"""Runs of the reference at chosen sizes, each made once, within a budget of seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf, prod
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np

from trtc.engines.errors import EngineError
from trtc.profiles import sizes_text

if TYPE_CHECKING:
    from trtc.compiler.reference import Reference
    from trtc.compiler.values import ValueSource
    from trtc.profiles import Sizes

Shape: TypeAlias = "tuple[int, ...] | None"
_ELEMENT_LIMIT = 2**25
"""Input elements of one trial; beyond this a trial costs more memory than a probe of sizes is worth."""


_RUNS_EXPECTED = 50
"""No single run may take more than this share of the budget, so that a few large sizes do not starve the rest."""
_SHORTEST_S = 0.02
"""Runs this short are always worth making while any budget is left."""

_OTHER_VALUES = 3
_VARYING_SHARE = 0.3
"""Part of the shortest run that is taken to grow with the sizes, until larger runs tell better."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial gave.

    Attributes:
        sizes: that it ran at.
        shapes: of every output; None for values that are no tensors.
        error: of the reference, naming the node; empty when it ran.
        seconds: it took.
    """

    sizes: dict[str, int]
    shapes: dict[str, Shape] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0

    @property
    def ran(self) -> bool:
        """Whether the model runs at these sizes."""
        return not self.error


class Trials:
    """Owns the trials of one model: remembers them, counts them, and keeps to the budget.

    Args:
        reference: to run.
        source: of values; may be replaced when symbols are merged.
        seed: of the values.
        budget_s: seconds for all trials together. Essential trials, without which nothing could be told, may take
            up to three times as long.

    Attributes:
        source: as given.
        skipped: sizes that were left out for time, for the report.
        reserved_s: seconds kept back for later trials; only essential ones may use them.
    """

    def __init__(self, reference: Reference, source: ValueSource, seed: int, budget_s: float) -> None:
        self.source = source
        self.skipped: list[str] = []
        self._reference = reference
        self._seed = seed
        self.reserved_s = 0.0
        self._budget_s = budget_s
        self._deadline_s = time.perf_counter() + budget_s
        self._one_run_s = max(_SHORTEST_S, budget_s / _RUNS_EXPECTED)
        self._known: dict[tuple[tuple[tuple[str, int], ...], int], Outcome] = {}
        self._largest = Outcome({})
        self._shortest_s = inf

    @property
    def outcomes(self) -> list[Outcome]:
        """All trials so far."""
        return list(self._known.values())

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return self._deadline_s - time.perf_counter()

    def run(self, sizes: Sizes, variant: int = 0) -> Outcome:
        """Run at these sizes; ``variant`` asks for other values at the same sizes."""
        key = (tuple(sorted(sizes.items())), variant)
        if key not in self._known:
            self._known[key] = self._run_some_values(dict(sizes), variant)
        return self._known[key]

    def try_run(self, sizes: Sizes, *, essential: bool = False) -> Outcome | None:
        """Run unless that would take more than is left; None, and a line in ``skipped``, when it is left out."""
        if (tuple(sorted(sizes.items())), 0) in self._known or self._affordable(sizes, essential=essential):
            return self.run(sizes)
        self.skipped.append(sizes_text(sizes))
        return None

    def _affordable(self, sizes: Sizes, *, essential: bool) -> bool:
        elements = self._elements(sizes)
        left_s = self.left_s + 2 * self._budget_s if essential else self.left_s - self.reserved_s
        if elements > _ELEMENT_LIMIT or left_s <= 0:
            return False
        if not self._largest.sizes:
            return True
        ratio = elements / max(1, self._elements(self._largest.sizes))
        varying_s = max(self._largest.seconds - self._shortest_s, _VARYING_SHARE * self._shortest_s)
        if essential:
            return self._shortest_s + varying_s * ratio < self._budget_s / 2
        return self._shortest_s + varying_s * (ratio**1.5 if ratio > 1 else ratio) < self._one_run_s

    def _elements(self, sizes: Sizes) -> int:
        total = 0
        for spec in self.source.inputs:
            total += prod(dim if isinstance(dim, int) else sizes.get(str(dim), 1) for dim in spec.dims or ())
        return total

    def _run_some_values(self, sizes: dict[str, int], variant: int) -> Outcome:
        """Run; where values may be what failed, and not the sizes, try other values before giving up."""
        outcome = self._run(sizes, variant)
        for other in range(_OTHER_VALUES if self.source.guesses else 0):
            if outcome.ran:
                break
            outcome = self._run(sizes, 1000 + 10 * variant + other)
        return outcome

    def _run(self, sizes: dict[str, int], variant: int) -> Outcome:
        salt = crc32(repr(sorted(sizes.items())).encode())
        feeds = self.source.feeds(sizes, np.random.default_rng([self._seed, variant, salt]))
        start_s = time.perf_counter()
        try:
            outputs = self._reference.run(feeds)
        except EngineError as error:
            return Outcome(sizes, error=str(error), seconds=time.perf_counter() - start_s)
        outcome = Outcome(
            sizes, {name: _shape(value) for name, value in outputs.items()}, seconds=time.perf_counter() - start_s
        )
        self._shortest_s = min(self._shortest_s, outcome.seconds)
        if self._elements(sizes) >= self._elements(self._largest.sizes):
            self._largest = outcome
        return outcome


def _shape(value: Any) -> Shape:
    return tuple(value.shape) if isinstance(value, np.ndarray) else None
