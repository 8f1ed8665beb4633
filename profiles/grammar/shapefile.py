"""``@file.json``: shapes of inputs whose names cannot be typed.

The file is an object: name to shape, or name to ``{"min": [..], "opt": [..], "max": [..]}``. The entries of a shape
are numbers or, where an option takes ranges, texts such as ``"1..8"`` and ``"?"``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtc.profiles.errors import ProfileError, UsageError
from trtc.profiles.grammar.digits import MAX_AXES, shown
from trtc.profiles.grammar.names import check_count, first_repeated
from trtc.profiles.grammar.spans import shape_from_spans
from trtc.profiles.grammar.triples import KINDS, parse_sizes, shape_from_triple

if TYPE_CHECKING:
    from trtc.profiles.grammar.values import InputShape

_MAX_BYTES = 16 * 2**20


def read_shape_file(path: str) -> dict[str, Any]:
    """Read a shape file; its values are checked by ``file_sizes`` or ``file_shape``.

    Raises:
        UsageError: when there is no such file, it cannot be read, or it is larger than 16 MiB.
        ProfileError: when it is not a JSON object with each name once.
    """
    file = Path(path)
    try:
        if not file.is_file() or file.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{shown('@' + path)}: not a file of at most 16 MiB; write @ and the path of a JSON file")
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown('@' + path)} cannot be read: {error}; write @ and the path of a JSON file") from error
    try:
        names = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"{shown('@' + path)} is not a shape file: {error}; {_FORM}") from error
    if not isinstance(names, dict) or not names or "" in names:
        raise ProfileError(f"{shown('@' + path)} is not an object of input names; {_FORM}")
    check_count(len(names), "names", "@" + path)
    return names


def file_sizes(name: str, value: object) -> tuple[int, ...]:
    """Read a shape of plain sizes.

    Raises:
        ProfileError: unless ``value`` is a list of whole numbers.
    """
    return parse_sizes(name, _texts(name, value, spans=False))


def file_shape(name: str, value: object) -> InputShape:
    """Read a shape of sizes and spans, or an object of min, opt and max.

    Raises:
        ProfileError: for anything else.
    """
    if not isinstance(value, dict):
        return shape_from_spans(name, _texts(name, value, spans=True))
    known = {kind: file_sizes(name, value[kind]) for kind in KINDS if kind in value}
    if not known or len(known) != len(value):
        raise ProfileError(f"input {name!r} has the keys {shown(', '.join(map(str, value)))}; {_FORM}")
    return shape_from_triple(name, known)


_FORM = 'write {"name": [1, 3, 224]} or {"name": {"min": [1], "opt": [4], "max": [8]}}'


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    repeated = first_repeated(name for name, _ in pairs)
    if repeated is not None:
        raise ValueError(f"the name {shown(repeated)} stands twice")
    return dict(pairs)


def _texts(name: str, value: object, *, spans: bool) -> list[str]:
    if not isinstance(value, list):
        raise ProfileError(f"input {name!r} has {shown(str(value))} where a list of sizes belongs; {_FORM}")
    check_count(len(value), "axes", name, MAX_AXES)
    for item in value:
        if not isinstance(item, (int, str) if spans else int):
            raise ProfileError(f"input {name!r} has the entry {shown(repr(item))}; write whole numbers, such as 64")
    return [str(item) for item in value]
