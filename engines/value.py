"""What frozen values of the runtime derive from: classes that cost nothing to make."""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True):
    """A frozen value with fields, like a frozen dataclass with slots.

    Making such a dataclass takes a quarter of a millisecond, and making one of these 7 us (`benchmarks/starting.py`).
    Loading a bundle makes fifty classes, and every program waits for that. Values that are read from a manifest say
    ``msgspec.Struct`` themselves: their annotations must be there when they are decoded.
    """
