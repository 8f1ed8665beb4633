"""Symbols, ranges, profiles, ladders and the shape grammars. No model, no engine."""

from trtc.profiles.dims import Dim, Expr, Sizes, Step, Term, dim_symbols, dim_text, dim_value, shape_text, sizes_text
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
