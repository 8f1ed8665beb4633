"""Reads the tables of a TOML file strictly: each key once asked for, of its type, and nothing left over."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from trtc.profiles.errors import UsageError
from trtc.profiles.nearest import nearest_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KINDS = {"text": str, "whole number": int, "number": float, "true or false": bool, "list": list, "table": dict}


class StrictTable:
    """One table of a file.

    Args:
        where: the file, and the path of keys to this table, for errors.
        values: as ``tomllib`` read them.
    """

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where = where
        self._values = values
        self._asked: list[str] = []

    def has(self, key: str) -> bool:
        """Tell whether a key that may be left out is there."""
        self._asked.append(key)
        return key in self._values

    def text(self, key: str) -> str:
        """Return a text."""
        found: str = self._take(key, "text")
        return found

    def whole(self, key: str, least: int = 0) -> int:
        """Return a whole number of at least ``least``."""
        found: int = self._take(key, "whole number")
        if found < least:
            raise UsageError(f"{self.path(key)} is {found}; it is {least} or more")
        return found

    def number(self, key: str) -> float:
        """Return a finite number of 0 or more; whole numbers are numbers too."""
        self._asked.append(key)
        value = self._values.get(key)
        number = float(value) if type(value) is int and abs(value) < 1 << 53 else self._take(key, "number")
        if not (isfinite(number) and number >= 0):
            raise UsageError(f"{self.path(key)} is {number}; it is a finite number of 0 or more")
        return float(number)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        found: bool = self._take(key, "true or false")
        return found

    def one_of(self, key: str, allowed: Sequence[str]) -> str:
        """Return one of these texts."""
        found = self.text(key)
        if found not in allowed:
            raise UsageError(f"{self.path(key)} is {found!r}; it is {' or '.join(map(repr, allowed))}")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(self.list_of(key, str, "texts"))

    def list_of(self, key: str, kind: type, words: str) -> list[Any]:
        """Return a list whose entries are all of one type."""
        found: list[Any] = self._take(key, "list")
        if any(type(item) is not kind for item in found):
            raise UsageError(f"{self.path(key)} is {found!r}; it is a list of {words}")
        return found

    def table(self, key: str) -> StrictTable:
        """Return a table inside this one."""
        return StrictTable(self.path(key), self._take(key, "table"))

    def tables(self, key: str) -> list[StrictTable]:
        """Return a list of tables."""
        found = self.list_of(key, dict, "tables")
        return [StrictTable(f"{self.path(key)}[{i}]", values) for i, values in enumerate(found)]

    def keys(self) -> tuple[str, ...]:
        """Return all keys, which then count as asked for."""
        self._asked.extend(self._values)
        return tuple(self._values)

    def done(self) -> None:
        """Say that nothing more will be asked for.

        Raises:
            UsageError: for a key that nobody asked for; the nearest that has a meaning is offered.
        """
        for key in self._values:
            if key not in self._asked:
                near = nearest_name(key, self._asked)
                hint = f"did you mean {near!r}?" if near else f"known: {', '.join(dict.fromkeys(self._asked))}"
                raise UsageError(f"{self.path(key)}: this key has no meaning here; {hint}")

    def path(self, key: str) -> str:
        """Name a key for an error."""
        return f"{self.where}.{key}" if not self.where.endswith(": ") else f"{self.where}{key}"

    def _take(self, key: str, kind: str) -> Any:
        self._asked.append(key)
        if key not in self._values:
            raise UsageError(f"{self.path(key)} is missing; write a {kind}")
        value = self._values[key]
        if type(value) is not _KINDS[kind]:
            raise UsageError(f"{self.path(key)} is {str(value)[:60]!r}; write a {kind}")
        return value
