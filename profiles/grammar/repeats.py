"""How options that are simply repeated make several profiles: a name that comes again starts the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.names import check_count, first_repeated

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")


def profiles_by_repetition(texts: Iterable[list[tuple[str, T]]], option: str) -> list[dict[str, T]]:
    """Gather the entries of each text into profiles.

    Args:
        texts: for each text, in order, its names and their values.
        option: what the texts were given to, for the message.

    Raises:
        ProfileError: when one text names an input twice, or for more than 4096 entries.
    """
    profiles: list[dict[str, T]] = []
    count = 0
    for entries in texts:
        repeated = first_repeated(name for name, _ in entries)
        if repeated is not None:
            raise ProfileError(
                f"{option} names input {repeated!r} twice in one text; keep one, or repeat {option} for another profile"
            )
        count += len(entries)
        check_count(count, "entries", option)
        if not profiles or any(name in profiles[-1] for name, _ in entries):
            profiles.append({})
        profiles[-1].update(entries)
    return profiles
