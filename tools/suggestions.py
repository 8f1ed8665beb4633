"""Command lines that are worth trying next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from trtc.profiles.grammar import quote_name

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.manifest import Manifest

ROWS = 8
LENGTH = 128
"""Examples for a first try: rows that a server may batch, and a length."""


def suggested(symbol: str, index: int, low: int, high: int | None = None) -> list[str]:
    """Suggest a range of one symbol inside the sizes that run.

    Buckets are not suggested: they serve padding, and what may be padded with what is the user's to say.

    Args:
        symbol: its name.
        index: its place among the symbols; the first mostly counts rows.
        low: smallest size that runs; where only multiples run, it is one of them.
        high: largest size that runs; None where none is known.
    """
    name, low = quote_name(symbol), max(1, low)
    wanted = ROWS * low if index == 0 else max(4, LENGTH // low) * low
    top = wanted if high is None else min(high, wanted)
    return ["--dim", f"{name}={low}" if top == low else f"{name}={low}..{top}"]


def ranges_hint(manifest: Manifest) -> str:
    """Suggest ranges for a bundle that serves every size as it comes; empty for any other."""
    if not any(r.max is None for profile in manifest.ladder.profiles for r in profile.ranges.values()):
        return ""
    ranges = manifest.ladder.profiles[0].ranges
    words = [word for i, (s, r) in enumerate(ranges.items()) for word in suggested(s, i, r.min, r.max)]
    return shlex.join(words)


def run_command(path: Path, manifest: Manifest) -> str:
    """Return a command line that runs a bundle."""
    words = ["trtc", "run", str(path)]
    ranges = manifest.ladder.profiles[0].ranges
    if ranges and not ranges_hint(manifest):
        words.append("--all-profiles")
    elif ranges:
        sizes = {s: r.min if r.max == r.min else max(r.min, 2) for s, r in ranges.items()}
        words += ["--sizes", ",".join(f"{quote_name(symbol)}={size}" for symbol, size in sizes.items())]
    return shlex.join(words)
