"""Nearest names: every error about an unknown name offers the one that was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, ignoring case, or None."""
    from difflib import get_close_matches  # no small import, and most programs make no such error

    by_fold = {k.casefold(): k for k in known}
    found = get_close_matches(name.casefold(), list(by_fold), n=1, cutoff=0.5)
    return by_fold[found[0]] if found else None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that a name is unknown: the name, the nearest, and all that exist (at most 20 of them)."""
    names = list(known)
    near = nearest_name(name, names)
    hint = f"; did you mean {near!r}?" if near else ""
    listed = ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")  # noqa: PLR2004
    return f"unknown {kind} {name!r}{hint} (known: {listed or 'none'})"
