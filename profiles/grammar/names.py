"""Names as people type them: bare, or in quotes when they hold a character that the grammar uses.

A quote counts only where a name begins, so ``it's:2x3`` is a bare name. Inside quotes a backslash makes the next
character literal. A bare name ends at the *last* separator, because names hold colons far more often than sizes do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import BLANKS, MAX_ENTRIES, shown
from trtc.profiles.nearest import nearest_name, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable

QUOTES = "'\""
_PLAIN = frozenset("_./-")
_READ_OTHERWISE = frozenset(",:'\"")
"""Characters at which a name that was typed bare may have been cut."""


def quote_name(name: str) -> str:
    """Write a name so that every grammar of trtc reads it back: bare where that is safe, else in double quotes."""
    if name and all(char.isalnum() or char in _PLAIN for char in name):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unknown_typed(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that a typed name is unknown, and how to type the nearest one where quotes are what was missing."""
    names = list(known)
    near = nearest_name(name, names)
    hint = f"; put the name in double quotes: {quote_name(near)}" if near and _READ_OTHERWISE & set(near) else ""
    return unknown_name(kind, name, names) + hint


def read_quoted(text: str, start: int) -> tuple[str, int]:
    """Read the quoted name that begins at ``start``; return it and the index after its closing quote.

    Raises:
        ProfileError: when the quote is never closed.
    """
    quote, at, chars = text[start], start + 1, []
    while at < len(text) and text[at] != quote:
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        chars.append(text[at])
        at += 1
    if at >= len(text):
        raise ProfileError(
            f"{shown(text)}: the quote {quote} is never closed; write {quote}name{quote}, "
            "and a backslash before a quote that belongs to the name"
        )
    return "".join(chars), at + 1


def split_name(item: str, separator: str, form: str) -> tuple[str, str]:
    """Split ``name<separator>rest`` at the last separator, or after a quoted name.

    Args:
        item: one item, such as ``a:b:1x3``.
        separator: one character.
        form: how the item should look, for the message.

    Returns:
        The name without quotes, and what follows the separator.

    Raises:
        ProfileError: without a separator, or for an empty name.
    """
    body = item.strip(BLANKS)
    if body[:1] and body[0] in QUOTES:
        name, end = read_quoted(body, 0)
        rest = body[end:].lstrip(BLANKS)
        found, rest = rest[:1] == separator, rest[1:]
    else:
        head, sep, rest = body.rpartition(separator)
        name, found = head.strip(BLANKS), bool(sep)
    if not found or not name:
        raise ProfileError(
            f"{shown(item)} is not of the form {form}; put the name in quotes when it holds commas, "
            "brackets, quotes or blanks at an end"
        )
    return name, rest


def split_items(text: str, *, brackets: bool = False) -> list[str]:
    """Split at commas outside quoted names and, with ``brackets``, outside ``[...]``.

    Raises:
        ProfileError: for an empty item, or more than 4096 of them.
    """
    items, begin, at, fresh, inside = [], 0, 0, True, False
    while at < len(text):
        char = text[at]
        if fresh and char in QUOTES:
            fresh, at = False, read_quoted(text, at)[1]
            continue
        if char == "," and not inside:
            items.append(text[begin:at])
            fresh, begin = True, at + 1
        elif char not in BLANKS:
            fresh = False
            inside = brackets and (char == "[" or (inside and char != "]"))
        at += 1
    items.append(text[begin:])
    if not all(item.strip(BLANKS) for item in items):
        raise ProfileError(f"{shown(text)} holds an empty item; leave out the extra comma, or write what is missing")
    check_count(len(items), "items", text)
    return items


def check_count(count: int, things: str, text: str, limit: int = MAX_ENTRIES) -> None:
    """Refuse more things than any model has.

    Raises:
        ProfileError: when ``count`` exceeds ``limit``.
    """
    if count > limit:
        raise ProfileError(f"{shown(text)}: {count} {things}, but at most {limit} are allowed; write fewer")


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs twice, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
