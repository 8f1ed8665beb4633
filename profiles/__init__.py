"""Symbols, ranges, profiles, ladders and the shape grammars. No model, no engine.

Names are imported when they are first used: `trtc exec` needs two of them before it starts a program.
"""

from __future__ import annotations

from trtc.profiles.on_demand import on_demand

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # else no name would be unknown
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "trtc.profiles.dims": (
                "Dim",
                "Expr",
                "Sizes",
                "Step",
                "Term",
                "dim_symbols",
                "dim_text",
                "dim_value",
                "shape_text",
                "sizes_text",
            ),
            "trtc.profiles.errors": (
                "CheckError",
                "HostError",
                "ModelError",
                "ProfileError",
                "RequestError",
                "TrtcError",
                "UsageError",
            ),
            "trtc.profiles.ladder": ("Ladder",),
            "trtc.profiles.nearest": ("nearest_name", "unknown_name"),
            "trtc.profiles.padding": ("Derived", "PadRule"),
            "trtc.profiles.ranges": ("Profile", "Range"),
        },
    )
