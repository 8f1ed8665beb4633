"""Several axes carry one symbol: what each of them says must come together in one range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.profiles.dims import Expr, dim_symbols
from trtc.profiles.errors import ProfileError
from trtc.profiles.grammar.names import quote_name
from trtc.profiles.grammar.values import OPEN, input_axis
from trtc.profiles.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Claim:
    """What one axis of one input says about its size.

    Attributes:
        input: name of the input.
        axis: the axis.
        range: its range.
        tuned: ``range.opt`` was stated, and does not merely repeat max.
    """

    input: str
    axis: int
    range: Range
    tuned: bool

    @property
    def axis_text(self) -> str:
        """Name the axis for a message."""
        return input_axis(self.input, self.axis)


def common_range(symbol: str, claims: Sequence[Claim], where: str) -> Range:
    """Intersect the ranges of all axes that carry one symbol.

    The engine demands equal sizes on these axes, so no other size could ever be run. ``opt`` is the one that was
    stated; where none was, it is the common max.

    Args:
        symbol: the symbol.
        claims: at least one.
        where: begins every message, such as ``profile 1: ``.

    Raises:
        ProfileError: for ranges with no common size, unequal opts, or an opt outside of what is left.
    """
    lowest = max(claims, key=lambda claim: claim.range.min)
    bounded = [claim for claim in claims if claim.range.max is not None]
    least = lowest.range.min
    most, highest = min(((c.range.max or 0, c) for c in bounded), key=lambda pair: pair[0], default=(None, lowest))
    if most is not None and least > most:
        raise ProfileError(
            f"{where}{lowest.axis_text} ({lowest.range}) and {highest.axis_text} ({highest.range}) share the symbol "
            f"{symbol!r}, but no size fits both; give them ranges that overlap"
        )
    tuned = [claim for claim in claims if claim.tuned]
    if not tuned or most is None:
        return Range(least, most, most)
    first, opt = tuned[0], tuned[0].range.opt
    for other in tuned[1:]:
        if other.range.opt != opt:
            raise ProfileError(
                f"{where}{first.axis_text} (opt {opt}) and {other.axis_text} (opt {other.range.opt}) share the symbol "
                f"{symbol!r}, but have different opt sizes; write one opt for both"
            )
    if opt is None or not least <= opt <= most:
        raise ProfileError(
            f"{where}{first.axis_text} has opt {opt}, but all inputs with the symbol {symbol!r} together allow "
            f"{least}..{most}; write an opt inside"
        )
    return Range(least, opt, most)


def expression_range(expr: Expr, claim: Claim, ranges: Mapping[str, Range], where: str) -> None:
    """Check the range given for an axis whose size follows from symbols.

    Args:
        expr: the size of the axis.
        claim: what was given; open is always right.
        ranges: the range of each bound symbol.
        where: begins every message.

    Raises:
        ProfileError: when a symbol stands nowhere alone, or the given numbers are not those that follow.
    """
    unbound = sorted(dim_symbols(expr) - ranges.keys())
    if unbound:
        raise ProfileError(
            f"{where}{claim.axis_text} is {expr}, and no input axis is the symbol {unbound[0]!r} alone; "
            f"leave the per-input shapes out and write --dim {quote_name(unbound[0])}=MIN:OPT:MAX"
        )
    stated, follows = [], []
    for kind in ("min", "opt", "max"):
        given = getattr(claim.range, kind)
        sizes = {symbol: getattr(ranges[symbol], kind) for symbol in dim_symbols(expr)}
        if given is None or (kind == "opt" and not claim.tuned):
            continue
        stated.append(given)
        follows.append(None if None in sizes.values() else expr.value(sizes))
    if claim.range != OPEN and stated != follows:
        told, wrong = (", ".join("any" if n is None else str(n) for n in sizes) for sizes in (follows, stated))
        raise ProfileError(
            f"{where}{claim.axis_text} is {expr}, so its sizes are {told}, but {wrong} was given; "
            "write the sizes that follow from the other axes"
        )
