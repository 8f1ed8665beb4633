"""Traffic in a few lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trtc.profiles.traffic import Arrivals, Traffic

SHARES = (0.5, 0.9, 0.99)
_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 40


def summary_lines(traffic: Traffic) -> tuple[str, ...]:
    """Describe traffic: how much there is, then for each symbol its spread and a small picture."""
    counted = f"{traffic.requests:,} requests" if traffic.requests else "a distribution"
    lines = [f"{counted}, {len(traffic.sizes):,} different sizes of {', '.join(traffic.symbols)}"]
    for symbol in traffic.symbols:
        sizes, weights = traffic.marginal(symbol)
        middle, most, nearly = traffic.quantiles(symbol, SHARES)
        mean = float(np.average(sizes, weights=weights))
        lines.append(
            f"{symbol}: {sizes[0]}..{sizes[-1]}, mean {mean:.1f}, half up to {middle}, 90 % up to {most}, "
            f"99 % up to {nearly}  |{bars(traffic, symbol)}|"
        )
    if traffic.arrivals is not None:
        lines.append(_pace(traffic.arrivals))
    return tuple(lines)


def bars(traffic: Traffic, symbol: str, columns: int = _COLUMNS) -> str:
    """Draw the share of each stretch of sizes, the smallest on the left, in characters of eight heights."""
    sizes, weights = traffic.marginal(symbol)
    low, high = int(sizes[0]), int(sizes[-1])
    columns = min(columns, high - low + 1)
    at = ((sizes - low) * columns) // (high - low + 1)
    shares = np.bincount(at, weights, columns)
    heights = np.ceil(shares / shares.max() * (len(_BARS) - 1)).astype(int)
    return "".join(_BARS[h] for h in heights)


def _pace(arrivals: Arrivals) -> str:
    spread_s = arrivals.last_s - arrivals.first_s
    if spread_s <= 0:
        return f"{arrivals.count:,} of them at one moment"
    busiest = np.bincount((arrivals.times_s - arrivals.first_s).astype(np.int64)).max() * arrivals.every
    return (
        f"{arrivals.count:,} of them over {spread_s:.1f} s: {arrivals.count / spread_s:.1f} a second, "
        f"about {busiest:,} in the busiest second"
    )
