"""Symbols, ranges, profiles, ladders and the shape grammars. No model, no engine.

Names are imported when they are first used: `trtc exec` needs two of them before it starts a program.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from typing import Any

    from trtc.profiles.dims import (
        Dim,
        Expr,
        Sizes,
        Step,
        Term,
        dim_symbols,
        dim_text,
        dim_value,
        shape_text,
        sizes_text,
    )
    from trtc.profiles.errors import (
        CheckError,
        HostError,
        ModelError,
        ProfileError,
        RequestError,
        TrtcError,
        UsageError,
    )
    from trtc.profiles.ladder import Ladder
    from trtc.profiles.nearest import nearest_name, unknown_name
    from trtc.profiles.padding import Derived, PadRule
    from trtc.profiles.ranges import Profile, Range

__all__ = [
    "CheckError",
    "Derived",
    "Dim",
    "Expr",
    "HostError",
    "Ladder",
    "ModelError",
    "PadRule",
    "Profile",
    "ProfileError",
    "Range",
    "RequestError",
    "Sizes",
    "Step",
    "Term",
    "TrtcError",
    "UsageError",
    "dim_symbols",
    "dim_text",
    "dim_value",
    "nearest_name",
    "shape_text",
    "sizes_text",
    "unknown_name",
]

_HOMES = {
    "CheckError": "trtc.profiles.errors",
    "Derived": "trtc.profiles.padding",
    "Dim": "trtc.profiles.dims",
    "Expr": "trtc.profiles.dims",
    "HostError": "trtc.profiles.errors",
    "Ladder": "trtc.profiles.ladder",
    "ModelError": "trtc.profiles.errors",
    "PadRule": "trtc.profiles.padding",
    "Profile": "trtc.profiles.ranges",
    "ProfileError": "trtc.profiles.errors",
    "Range": "trtc.profiles.ranges",
    "RequestError": "trtc.profiles.errors",
    "Sizes": "trtc.profiles.dims",
    "Step": "trtc.profiles.dims",
    "Term": "trtc.profiles.dims",
    "TrtcError": "trtc.profiles.errors",
    "UsageError": "trtc.profiles.errors",
    "dim_symbols": "trtc.profiles.dims",
    "dim_text": "trtc.profiles.dims",
    "dim_value": "trtc.profiles.dims",
    "nearest_name": "trtc.profiles.nearest",
    "shape_text": "trtc.profiles.dims",
    "sizes_text": "trtc.profiles.dims",
    "unknown_name": "trtc.profiles.nearest",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
