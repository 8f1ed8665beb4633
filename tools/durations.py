"""Durations as people read them."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """Write a duration for people."""
    if seconds < 1e-3:  # noqa: PLR2004 (microseconds below a millisecond)
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
