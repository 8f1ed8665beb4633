"""Traffic that is planned for before there is any: distributions of one symbol, and how well they fit to data."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, exp, lgamma, log, sqrt
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from trtc.profiles.errors import UsageError
from trtc.profiles.traffic import Traffic, traffic_from_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.profiles.traffic import FloatArray

DistributionKind: TypeAlias = Literal["lognormal", "negative binomial"]
_MOST_SIZES = 1 << 16
_LEAST_WEIGHT = 1e-12
_POISSON_LIKE = 1e6


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sizes of one symbol.

    Attributes:
        kind: ``lognormal``: the logarithm of a size has mean log(``center``) and standard deviation ``spread``;
            ``negative binomial``: sizes minus 1 have mean ``center`` minus 1 and variance ``mean + mean^2 / spread``.
        center: median size (lognormal) or mean size (negative binomial).
        spread: above 0.
        low: smallest size.
        high: largest size; what lies outside is left out.

    Raises:
        UsageError: for figures outside these ranges, or more than 65,536 sizes.
    """

    kind: DistributionKind
    center: float
    spread: float
    low: int
    high: int

    def __post_init__(self) -> None:
        least = 0.0 if self.kind == "lognormal" else 1.0
        if self.kind not in {"lognormal", "negative binomial"}:
            raise UsageError(f"unknown distribution {self.kind!r}; take lognormal or negative binomial")
        if not (least < self.center < float("inf") and 0 < self.spread < float("inf")):
            raise UsageError(f"{self}: the center is above {least:g} and the spread above 0, both finite")
        if not 1 <= self.low <= self.high or self.high - self.low >= _MOST_SIZES:
            raise UsageError(f"{self}: give 1 <= low <= high, and at most {_MOST_SIZES} sizes")

    def shares(self) -> FloatArray:
        """The share of each size from ``low`` to ``high``, float64; they add up to 1.

        Raises:
            UsageError: when nothing of the distribution lies between them.
        """
        sizes = range(self.low, self.high + 1)
        if self.kind == "lognormal":
            steps = np.array([self._below(n - 0.5) for n in (*sizes, self.high + 1)])
            shares = np.diff(steps)
        else:
            shares = np.array([self._mass(n - 1) for n in sizes])
        if not shares.sum() > 0:
            raise UsageError(f"{self}: nothing of it lies between {self.low} and {self.high}; move them or the center")
        found: FloatArray = shares / shares.sum()
        return found

    def traffic(self, symbol: str) -> Traffic:
        """Return it as traffic; sizes that hardly ever come (a share below 1e-12) are left out."""
        shares = self.shares()
        kept = np.flatnonzero(shares > _LEAST_WEIGHT)
        return traffic_from_rows([symbol], kept[:, None] + self.low, shares[kept], 0)

    def _below(self, size: float) -> float:
        return 0.5 * (1 + erf(log(size / self.center) / (self.spread * sqrt(2)))) if size > 0 else 0.0

    def _mass(self, n: int) -> float:
        mean, r = self.center - 1, self.spread
        return exp(lgamma(n + r) - lgamma(r) - lgamma(n + 1) + r * log(r / (r + mean)) + n * log(mean / (r + mean)))

    def __str__(self) -> str:
        return f"{self.kind} around {self.center:.4g} with spread {self.spread:.4g}, {self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A distribution that was fitted to data.

    Attributes:
        distribution: what was found.
        distance: Kolmogorov-Smirnov: the largest difference between the two shares of sizes up to any size; 0 is a
            perfect fit, above 0.1 plan with the data instead.
    """

    distribution: Distribution
    distance: float


def fit_distribution(traffic: Traffic, symbol: str, kind: DistributionKind) -> Fitted:
    """Fit by moments: of the logarithms (lognormal), or of the sizes (negative binomial).

    Raises:
        UsageError: when the traffic lacks the symbol, or holds one size only.
    """
    sizes, weights = traffic.marginal(symbol)
    if len(sizes) < 2:  # noqa: PLR2004 - a spread needs two
        raise UsageError(f"{symbol} has one size only, {sizes[0]}; a distribution needs two or more")
    low, high = int(sizes[0]), int(sizes[-1])
    values = np.log(sizes) if kind == "lognormal" else sizes - 1.0
    mean = float(np.average(values, weights=weights))
    variance = float(np.average((values - mean) ** 2, weights=weights))
    if kind == "lognormal":
        found = Distribution(kind, exp(mean), sqrt(variance), low, high)
    else:
        spread = mean**2 / (variance - mean) if variance > mean else _POISSON_LIKE
        found = Distribution(kind, mean + 1, min(spread, _POISSON_LIKE), low, high)
    shares = np.zeros(high - low + 1)
    shares[sizes - low] = weights / weights.sum()
    return Fitted(found, float(np.abs(np.cumsum(shares) - np.cumsum(found.shares())).max()))


def histogram(symbol: str, counts: Mapping[int, float]) -> Traffic:
    """Return counts of sizes as traffic.

    Raises:
        UsageError: as ``traffic_from_rows`` does.
    """
    return traffic_from_rows([symbol], np.array([[size] for size in counts], np.int64), list(counts.values()), 0)


def independent(first: Traffic, second: Traffic) -> Traffic:
    """Combine traffic over different symbols, as if sizes of one said nothing about the other's.

    Raises:
        UsageError: for symbols in common, or more than 4 million combinations.
    """
    rows = len(first.sizes) * len(second.sizes)
    if set(first.symbols) & set(second.symbols) or rows > 4_000_000:  # noqa: PLR2004 - 100 MB
        raise UsageError(
            f"traffic over {', '.join(first.symbols)} and over {', '.join(second.symbols)} ({rows} combinations) "
            "cannot be combined; take different symbols, and at most 4,000,000 combinations"
        )
    sizes = np.concatenate(
        [np.repeat(first.sizes, len(second.sizes), axis=0), np.tile(second.sizes, (len(first.sizes), 1))], axis=1
    )
    weights = np.outer(first.weights / first.total, second.weights / second.total).ravel()
    return traffic_from_rows((*first.symbols, *second.symbols), sizes, weights, 0)
