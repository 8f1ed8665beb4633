"""trtexec's grammar: ``--minShapes=name:1x3x224x224,name2:4`` and its sisters, in ``--profile=N`` blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.errors import ProfileError, UsageError
from trtc.profiles.grammar.digits import BLANKS, MAX_ENTRIES, parse_size, shown
from trtc.profiles.grammar.names import split_items, split_name
from trtc.profiles.grammar.shapefile import file_shape, file_sizes, read_shape_file
from trtc.profiles.grammar.triples import KINDS, Kind, parse_sizes, shape_from_triple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.profiles.grammar.values import InputProfiles, InputShape

_FORM = "name:1x3x224x224"
_OPTIONS: dict[str, str] = {"profile": "profile", "shapes": "shapes"}
for _kind in KINDS:
    _OPTIONS[f"{_kind}Shapes"] = _OPTIONS[f"{_kind}-shapes"] = _kind


def trtexec_options(arguments: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pick trtexec's shape options out of a command line, in their order, which decides the profile of each.

    Args:
        arguments: the words of the command line; ``--minShapes=V``, ``--min-shapes=V`` and ``--min-shapes V`` are
            found, up to a lone ``--``.

    Returns:
        Pairs of option name, without dashes, and value: what ``trtexec_shapes`` takes.

    Raises:
        UsageError: when an option stands last, without its value.
    """
    found = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            break
        option, equals, value = word.partition("=")
        if not option.startswith("--") or option[2:] not in _OPTIONS:
            continue
        if not equals:
            following = next(words, None)
            if following is None:
                raise UsageError(f"{option} has no value; write {option}={'0' if option == '--profile' else _FORM}")
            value = following
        found.append((option[2:], value))
    return tuple(found)


def trtexec_shapes(options: Sequence[tuple[str, str]]) -> InputProfiles:
    """Read shapes in trtexec's spelling.

    ``profile`` switches to a profile; what follows belongs to it, and what stands before the first one belongs to
    profile 0. ``shapes`` states all three kinds. An input with one kind only is fixed to it; two kinds are an error.
    ``name:`` is a scalar. A value ``@file.json`` reads a file.

    Args:
        options: pairs of ``profile``, ``shapes``, ``minShapes`` (or ``min-shapes``) ... and value, in the order typed.

    Raises:
        UsageError: for another option, or when a file cannot be read.
        ProfileError: for a value that does not follow the grammar, an input given twice, or gaps between profiles.
    """
    blocks: dict[int, _Block] = {}
    current = 0
    for option, value in options:
        what = _OPTIONS.get(option.lstrip("-"))
        if what is None:
            raise UsageError(f"{shown(option)} is not a shape option; write one of --{', --'.join(_OPTIONS)}")
        if what == "profile":
            current = _profile(value)
        block = blocks.setdefault(current, _Block())
        if what == "shapes":
            block.add_whole(_whole(value))
        for kind in KINDS:
            if what == kind:
                block.add(kind, _sizes(value))
    missing = [index for index in range(max(blocks, default=-1) + 1) if index not in blocks]
    if missing:
        raise ProfileError(
            f"--profile={max(blocks)} without --profile={missing[0]}; number the profiles from 0 without gaps"
        )
    return tuple(blocks[index].shapes() for index in range(len(blocks)))


class _Block:
    """Collects what one ``--profile=N`` states."""

    def __init__(self) -> None:
        self._whole: dict[str, InputShape] = {}
        self._kinds: dict[str, dict[Kind, tuple[int, ...]]] = {}

    def add(self, kind: Kind, entries: list[tuple[str, tuple[int, ...]]]) -> None:
        for name, sizes in entries:
            kinds = self._kinds.setdefault(name, {})
            if kind in kinds or name in self._whole:
                raise _repeated(name, f"--{kind}Shapes")
            kinds[kind] = sizes

    def add_whole(self, shapes: list[InputShape]) -> None:
        for shape in shapes:
            if shape.name in self._whole or shape.name in self._kinds:
                raise _repeated(shape.name, "--shapes")
            self._whole[shape.name] = shape

    def shapes(self) -> tuple[InputShape, ...]:
        return *self._whole.values(), *(shape_from_triple(name, kinds) for name, kinds in self._kinds.items())


def _profile(value: str) -> int:
    index = parse_size(value, "--profile")
    if index >= MAX_ENTRIES:
        raise ProfileError(f"--profile={index}, but at most {MAX_ENTRIES} profiles are allowed; number them from 0")
    return index


def _sizes(value: str) -> list[tuple[str, tuple[int, ...]]]:
    if value.startswith("@"):
        return [(name, file_sizes(name, sizes)) for name, sizes in read_shape_file(value[1:]).items()]
    entries = []
    for item in split_items(value):
        name, dims = split_name(item, ":", _FORM)
        dims = dims.strip(BLANKS)
        entries.append((name, parse_sizes(name, dims.split("x") if dims else [])))
    return entries


def _whole(value: str) -> list[InputShape]:
    if value.startswith("@"):
        return [file_shape(name, shape) for name, shape in read_shape_file(value[1:]).items()]
    return [shape_from_triple(name, {"opt": sizes}) for name, sizes in _sizes(value)]


def _repeated(name: str, option: str) -> ProfileError:
    return ProfileError(
        f"input {name!r} is given again by {option} in the same profile (--shapes states min, opt and max); "
        "keep one, or start another profile with --profile=N"
    )
