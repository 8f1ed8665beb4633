"""Polygraphy's grammar: ``name:[1,3,224,224]`` for each of min, opt and max, one text an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import BLANKS, shown
from trtc.profiles.grammar.names import split_name
from trtc.profiles.grammar.repeats import profiles_by_repetition
from trtc.profiles.grammar.shapefile import file_sizes, read_shape_file
from trtc.profiles.grammar.triples import KINDS, Kind, parse_sizes, shape_from_triple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.profiles.grammar.values import InputProfiles


def polygraphy_shapes(
    min_shapes: Sequence[str] = (), opt_shapes: Sequence[str] = (), max_shapes: Sequence[str] = ()
) -> InputProfiles:
    """Read shapes in Polygraphy's spelling, as ``--trt-min-shapes`` and its sisters take them.

    A name that comes again in one list starts the next profile, so repeated triples make several profiles.
    An input with one kind only is fixed to it; two kinds are an error. ``name:[]`` is a scalar.

    Args:
        min_shapes: one text an input, such as ``ids:[1,128]``, or ``@file.json``.
        opt_shapes: the same for opt.
        max_shapes: the same for max.

    Raises:
        UsageError: when a file cannot be read.
        ProfileError: for a text that does not follow the grammar, or lists for different numbers of profiles.
    """
    groups: dict[Kind, list[dict[str, tuple[int, ...]]]] = {}
    for kind, texts in zip(KINDS, (min_shapes, opt_shapes, max_shapes), strict=True):
        found = profiles_by_repetition(map(_entries, texts), f"--trt-{kind}-shapes")
        if found:
            groups[kind] = found
    counts = {kind: len(found) for kind, found in groups.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{kind} for {count}" for kind, count in counts.items())
        raise ProfileError(f"shapes for different numbers of profiles: {told}; repeat each kind once for each profile")
    profiles = []
    for index in range(max(counts.values(), default=0)):
        kinds = {kind: found[index] for kind, found in groups.items()}
        names = dict.fromkeys(name for shapes in kinds.values() for name in shapes)
        profiles.append(
            tuple(
                shape_from_triple(name, {kind: shapes[name] for kind, shapes in kinds.items() if name in shapes})
                for name in names
            )
        )
    return tuple(profiles)


def _entries(text: str) -> list[tuple[str, tuple[int, ...]]]:
    if text.startswith("@"):
        return [(name, file_sizes(name, value)) for name, value in read_shape_file(text[1:]).items()]
    name, dims = bracketed(text, "name:[1,3,224,224]")
    return [(name, parse_sizes(name, dims))]


def bracketed(text: str, form: str) -> tuple[str, list[str]]:
    """Split ``name:[a,b]`` into the name and the texts between the brackets.

    Raises:
        ProfileError: for another form.
    """
    name, rest = split_name(text, ":", form)
    rest = rest.strip(BLANKS)
    if not (rest.startswith("[") and rest.endswith("]")):
        raise ProfileError(f"{shown(text)} is not of the form {form}; write the values in square brackets")
    inner = rest[1:-1].strip(BLANKS)
    return name, inner.split(",") if inner else []
