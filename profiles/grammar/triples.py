"""Min, opt and max shapes of one input become ranges. trtexec, Polygraphy and shape files share this rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.digits import MAX_AXES, parse_size
from trtc.profiles.grammar.names import check_count
from trtc.profiles.grammar.values import InputShape, checked_range, input_axis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind: TypeAlias = Literal["min", "opt", "max"]
KINDS: tuple[Kind, ...] = ("min", "opt", "max")


def parse_sizes(name: str, parts: Sequence[str]) -> tuple[int, ...]:
    """Read the sizes of one input, one text an axis.

    Raises:
        ProfileError: for anything that is not a size, or more than 64 axes.
    """
    check_count(len(parts), f"axes of input {name!r}", "x".join(parts), MAX_AXES)
    return tuple(parse_size(part, input_axis(name, axis)) for axis, part in enumerate(parts))


def shape_from_triple(name: str, given: Mapping[Kind, tuple[int, ...]]) -> InputShape:
    """Make the ranges of one input.

    One kind alone fixes the input: the other two equal it, as trtexec does with ``--optShapes`` alone. Two kinds
    leave the third open to guessing, so they are refused.

    Raises:
        ProfileError: two kinds only, kinds of different rank, or numbers out of order.
    """
    lacking = [kind for kind in KINDS if kind not in given]
    if len(lacking) == 1:
        stated = " and ".join(kind for kind in KINDS if kind in given)
        raise ProfileError(
            f"input {name!r} has {stated} but no {lacking[0]} shape; "
            f"add the {lacking[0]} shape, or give one kind alone to fix the sizes"
        )
    only = next(iter(given.values()))
    low, opt, high = (given.get(kind, only) for kind in KINDS)
    if not len(low) == len(opt) == len(high):
        raise ProfileError(
            f"input {name!r} has min {_joined(low)}, opt {_joined(opt)} and max {_joined(high)} of different rank; "
            "write the same number of axes in each"
        )
    numbers = enumerate(zip(low, opt, high, strict=True))
    return InputShape(name, tuple(checked_range(input_axis(name, axis), *three) for axis, three in numbers))


def _joined(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes)) or "scalar"
