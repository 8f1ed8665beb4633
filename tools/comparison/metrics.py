"""Figures of two finite arrays, by Polygraphy's comparison functions where they serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.tools.comparison.rules import Rule

_NAME = "output"


@dataclass(frozen=True, slots=True)
class Judged:
    """What Polygraphy says.

    Attributes:
        passed: within the tolerance of the statistic.
        needed: the least absolute and relative tolerance that would pass; None for ``elemwise``, where both count.
    """

    passed: bool
    needed: tuple[float, float] | None


def judge(got: np.ndarray, expected: np.ndarray, rule: Rule) -> Judged:
    """Judge by one of Polygraphy's statistics.

    Args:
        got: float64, finite, at least one element.
        expected: the same shape. A reference of 0 counts as 2.2e-16 in relative errors, as Polygraphy does it.
        rule: with any statistic but ``tensor``.

    Raises:
        ImportError: when Polygraphy is not installed; the command says how to get it.
    """
    from polygraphy.comparator import SimpleCompareFunc

    function = SimpleCompareFunc(atol=rule.atol, rtol=rule.rtol, check_error_stat=rule.stat)
    result = _ask(function, got, expected)
    if rule.stat == "elemwise":
        return Judged(bool(result), None)
    errors = (getattr(result, f"{rule.stat}_absdiff"), getattr(result, f"{rule.stat}_reldiff"))
    return Judged(bool(result), (float(errors[0]), float(errors[1])))


def cosine(got: np.ndarray, expected: np.ndarray) -> float:
    """Return the cosine similarity: exactly 1 for equal arrays, 0 where one of two is all zero.

    Args:
        got: float64, finite, at least one element.
        expected: the same shape.

    Raises:
        ImportError: as ``judge``.
    """
    from polygraphy.comparator import CosineSimilarityCompareFunc

    if np.array_equal(got, expected):
        return 1.0  # without a rounding error
    # Scaled, so that squares of large or of faint values neither overflow nor vanish; a cosine does not change by it.
    scale = [float(np.max(np.abs(array), initial=0.0)) or 1.0 for array in (got, expected)]
    result = _ask(CosineSimilarityCompareFunc(), got / scale[0], expected / scale[1])
    return float(result.cosine_similarity)


def _ask(function: Callable[..., dict[str, Any]], got: np.ndarray, expected: np.ndarray) -> Any:
    """Call a comparison function on one output, without the lines that it would print."""
    from polygraphy.comparator import IterationResult
    from polygraphy.logger import G_LOGGER

    # Rank 0 becomes rank 1: Polygraphy assigns to elements, and numpy's scalars have none.
    one, other = np.atleast_1d(got), np.atleast_1d(expected)
    with G_LOGGER.verbosity(), np.errstate(all="ignore"):
        return function(IterationResult({_NAME: one}), IterationResult({_NAME: other}))[_NAME]
