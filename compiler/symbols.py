"""Names of symbols: every dynamic axis of an input gets one that a user can type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMELESS = frozenset(["", "-1", "?", "none"])
"""Spellings of "any size" that exporters write; two of them never mean one size."""

_UNTYPABLE = re.compile(r"[=:,;\x00-\x1f\x7f]")
"""What separates things where symbols are typed (``--dim NAME=1:8:64``, ``seq=3,batch=4``), and control characters."""

_NUMBER = re.compile(r"[+-]?\d+")


def is_nameless(name: str) -> bool:
    """Tell whether a dim's text says only that any size may come."""
    return name.strip().casefold() in _NAMELESS


def is_typable(name: str) -> bool:
    """Tell whether ``--dim NAME=...`` can be typed without quotes inside the option."""
    plain = name == name.strip() and not _UNTYPABLE.search(name) and name[:1] not in {"'", '"'}
    return plain and bool(name) and _NUMBER.fullmatch(name) is None


def typable_name(name: str) -> str:
    """Return the nearest name that can be typed."""
    cleaned = _UNTYPABLE.sub("_", name.strip()).strip().lstrip("'\"")
    return cleaned if is_typable(cleaned) else f"dim_{cleaned.lstrip('+-')}"


def axis_name(input_name: str, axis: int) -> str:
    """Return the symbol of an axis that the model left without a name."""
    return typable_name(f"{input_name}_{axis}")


def look_alikes(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Group names that differ only in blanks or case; names without such a twin are left out."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault("".join(name.split()).casefold(), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]
