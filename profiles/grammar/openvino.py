"""OpenVINO's grammar, and that of ``--shape``: ``name[1..8,3,200..500,?],name2[]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import BLANKS, shown
from trtc.profiles.grammar.names import split_items, split_name
from trtc.profiles.grammar.repeats import profiles_by_repetition
from trtc.profiles.grammar.shapefile import file_shape, read_shape_file
from trtc.profiles.grammar.spans import shape_from_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.profiles.grammar.values import InputProfiles, InputShape


def openvino_shapes(texts: Sequence[str]) -> InputProfiles:
    """Read shapes in OpenVINO's spelling.

    Inputs of one text, or of several, belong to one profile; a text that names an input again starts the next
    profile. ``?`` and ``-1`` are open, ``lo..`` is open above, ``..hi`` starts at 0, ``opt`` equals ``max``, and
    ``name[]`` is a scalar. The dims are the last brackets of an item, so ``x[0][1..8]`` names the input ``x[0]``.

    Args:
        texts: one for each occurrence of the option; ``@file.json`` reads a file.

    Raises:
        UsageError: when a file cannot be read.
        ProfileError: for a text that does not follow the grammar.
    """
    return tuple(tuple(shapes.values()) for shapes in profiles_by_repetition(map(_shapes, texts), "--shape"))


def _shapes(text: str) -> list[tuple[str, InputShape]]:
    if text.startswith("@"):
        return [(name, file_shape(name, value)) for name, value in read_shape_file(text[1:]).items()]
    return [_shape(item) for item in split_items(text, brackets=True)]


def _shape(item: str) -> tuple[str, InputShape]:
    name, dims = split_name(item, "[", "name[1..8,3,?]")
    dims = dims.strip(BLANKS)
    if not dims.endswith("]"):
        raise ProfileError(f"{shown(item)} does not end with ]; write name[1..8,3,?], the name in quotes if it is odd")
    inner = dims[:-1].strip(BLANKS)
    return name, shape_from_spans(name, inner.split(",") if inner else [])
