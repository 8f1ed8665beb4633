"""The key of a build: what was declared, as content."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

import msgspec

_FORMAT = 1
"""Part of every key: a change of the spelling below must miss."""


def key_of(parts: Mapping[str, object]) -> str:
    """Return the key of declared content: SHA-256 of its canonical JSON.

    Args:
        parts: digests, flags, numbers, lists, mappings, frozen values; never names, times of files, or what a build
            measures.

    Raises:
        TypeError: for a value that has no one spelling in JSON (bytes, objects, numbers that are not finite).
    """
    whole = {"format": _FORMAT, "parts": _canonical(parts, "parts")}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _canonical(value: object, where: str) -> object:
    """Reduce declared content to what JSON spells in one way."""
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [_canonical(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _canonical(item, f"{where}.{name}") for name, item in value.items()}
    if isinstance(value, msgspec.Struct) or hasattr(type(value), "__dataclass_fields__"):
        plain = msgspec.to_builtins(value, builtin_types=(bytes, bytearray), order="deterministic")
        return _canonical(plain, where)
    raise TypeError(f"{where} is {value!r}; a cache key takes text, finite numbers, lists, mappings and frozen values")
