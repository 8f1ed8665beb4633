"""What calls pay, one by one, for a way of running that serves most calls at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALIKE = 1.1
"""A lone call that takes less than this times the shortest is not worth a word: noise is as large."""


def lone_call_text(lone_s: Mapping[tuple[int, int], float], chosen: tuple[int, int]) -> str:
    """Say what a lone call takes, and how it would take less; nothing where that is not known.

    Args:
        lone_s: seconds of a call that has the machine to itself, by calls at once and threads each.
        chosen: of these.
    """
    if chosen not in lone_s:
        return ""
    fastest = min(lone_s, key=lambda way: lone_s[way])
    text = f"a lone call takes {_ms(lone_s[chosen])}"
    if chosen[0] == 1 or fastest[1] == chosen[1] or lone_s[chosen] < _ALIKE * lone_s[fastest]:
        return text  # with one call at a time nothing was traded
    threads = f"{fastest[1]} thread{'s' * (fastest[1] != 1)}"
    return f"{text}; with {threads} {_ms(lone_s[fastest])}: build with --callers 1 if calls come one by one"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
