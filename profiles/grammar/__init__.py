"""The shape grammars: what people type about sizes, padding and value ranges becomes frozen values.

Four grammars state shapes: ours (``--dim``, ``--bucket``, ``--buckets``), trtexec's, Polygraphy's and OpenVINO's. Each
has one reader; ``bind_shapes`` turns what any of them returned into profiles, equal ones for equal shapes. All
functions are pure but for ``@file.json``, which reads that file, and may be called from any thread.
"""

from trtc.profiles.grammar.bind import bind_shapes, require_closed
from trtc.profiles.grammar.derive import derived_inputs
from trtc.profiles.grammar.names import quote_name
from trtc.profiles.grammar.openvino import openvino_shapes
from trtc.profiles.grammar.options import ShapeOptions, parse_shapes, profiles_from_options
from trtc.profiles.grammar.pads import pad_rules
from trtc.profiles.grammar.polygraphy import polygraphy_shapes
from trtc.profiles.grammar.symbols import symbol_ranges
from trtc.profiles.grammar.trtexec import trtexec_options, trtexec_shapes
from trtc.profiles.grammar.valrange import val_ranges
from trtc.profiles.grammar.values import (
    InputDims,
    InputProfiles,
    InputShape,
    ParsedShapes,
    SymbolProfiles,
    SymbolRange,
    input_symbols,
)

__all__ = [
    "InputDims",
    "InputProfiles",
    "InputShape",
    "ParsedShapes",
    "ShapeOptions",
    "SymbolProfiles",
    "SymbolRange",
    "bind_shapes",
    "derived_inputs",
    "input_symbols",
    "openvino_shapes",
    "pad_rules",
    "parse_shapes",
    "polygraphy_shapes",
    "profiles_from_options",
    "quote_name",
    "require_closed",
    "symbol_ranges",
    "trtexec_options",
    "trtexec_shapes",
    "val_ranges",
]
