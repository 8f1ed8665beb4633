"""The words of ``trtc bench``: trtexec's benchmark flags mean what they mean there, ``--grid`` takes several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from trtc.tools.foreign_flags import without_foreign_flags
from trtc.tools.shape_options import ArgumentOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

_OURS = frozenset(
    ["--duration", "--warmUp", "--warm-up", "--percentile", "--streams", "--exportTimes", "--export-times"]
)
"""Flags that other verbs refuse, because they do not measure."""
_SIZES = re.compile(r"[^\s=/-][^\s=/]*=[0-9]+(,[0-9]+)*\Z")


class BenchWords(ArgumentOrder):
    """Keeps the order of words, as ``ArgumentOrder`` does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat ``--grid`` before each of its values, drop what has no effect, then parse."""
        kept = kept_words(args)
        ctx.meta["trtc.arguments"] = kept
        return click.Command.parse_args(self, ctx, list(kept))


def kept_words(words: Sequence[str]) -> list[str]:
    """Return the words to parse.

    Raises:
        UsageError: for a flag of trtexec whose effect trtc does not have.
    """
    kept: list[str] = []
    grid, valued = False, True
    for i, word in enumerate(words):
        if word == "--":
            return [*kept, *words[i:]]
        if word.partition("=")[0] == "--grid":
            grid, valued = True, word != "--grid"
            kept.append(word)
        elif grid and not valued:
            valued = True
            kept.append(word)
        elif grid and _SIZES.match(word):
            kept += ["--grid", word]
        else:
            grid = False
            kept += [word] if word.partition("=")[0] in _OURS else without_foreign_flags([word])
    return kept
