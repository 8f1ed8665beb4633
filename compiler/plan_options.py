"""What a build or a plan is told about traffic."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING

from trtc.profiles import Profile, Range, UsageError, unknown_name
from trtc.profiles.plan_file import PlanFile  # noqa: TC001 (as above)
from trtc.profiles.plan_values import Rare  # noqa: TC001 (as above)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from trtc.profiles.traffic import Traffic

MEASURE_S = 20.0
"""Seconds for measuring when a ladder is planned, where nothing else is said: a grid of costs and every way to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How the ladder is found, where traffic decides about it.

    Attributes:
        traffic: files to read it from; empty where the options state the profiles.
        tokenizer: for text files: sizes are counted in its tokens.
        text_symbol: the symbol that lengths of texts are sizes of; empty where the model has one symbol only.
        max_tokens: texts are cut to this many, as the program that serves them does; 0 for no limit.
        max_profiles: at most this many.
        align: buckets of a symbol are multiples of this.
        rare: what happens to rare sizes: see ``PlanRequest``.
        refuse_share: of the requests, where ``rare`` is ``refuse``.
        max_slot_bytes: planned memory that one call may need; None for no limit.
        within: a shorter ladder is taken when it costs at most this share more than the cheapest.
        plan: a plan to build; None for none.
        frozen: build exactly what the plan says, or say what no longer holds.
    """

    traffic: tuple[Path, ...] = ()
    tokenizer: Path | None = None
    text_symbol: str = ""
    max_tokens: int = 0
    max_profiles: int = 8
    align: dict[str, int] = field(default_factory=dict)
    rare: Rare = "cover"
    refuse_share: float = 0.0
    max_slot_bytes: int | None = None
    within: float = 0.02
    plan: PlanFile | None = None
    frozen: bool = False

    @property
    def asked(self) -> list[object]:
        """What the planner is asked for, as content for the cache key."""
        return [self.max_profiles, self.align, self.rare, self.refuse_share, self.max_slot_bytes, self.within]

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """What was typed, as options of the command; paths are no content and left out."""
        if not self.traffic:
            return {}
        return {
            "max-profiles": (str(self.max_profiles),),
            "align": tuple(f"{symbol}={step}" for symbol, step in self.align.items()),
        }


def closed_by(profiles: tuple[Profile, ...], traffic: Traffic | None) -> tuple[Profile, ...]:
    """End the open ranges of symbols that the traffic speaks of at its largest size."""
    if traffic is None:
        return profiles
    tops = {symbol: int(traffic.sizes[:, i].max()) for i, symbol in enumerate(traffic.symbols)}

    def closed(symbol: str, r: Range) -> Range:
        if r.max is not None or symbol not in tops:
            return r
        top = max(tops[symbol], r.min)
        return Range(r.min, top, top)

    return tuple(Profile(p.name, {s: closed(s, r) for s, r in p.ranges.items()}) for p in profiles)


def check_align(
    align: Mapping[str, int], symbols: Sequence[str], padded: AbstractSet[str], profiles: Sequence[Profile]
) -> None:
    """Refuse alignment that no ladder could keep to.

    Args:
        align: multiples, by symbol.
        symbols: of the model.
        padded: those that may be padded; others run at their own sizes and have no bucket of their own.
        profiles: as the options state them.

    Raises:
        UsageError: for the first that is wrong.
    """
    for symbol, step in align.items():
        if symbol not in symbols:
            raise UsageError(f"--align has an {unknown_name('symbol', symbol, symbols)}")
        if symbol not in padded:
            raise UsageError(
                f"--align {symbol}={step}, but {symbol} may not be padded, so it runs at its own sizes; "
                f"add --pad {symbol} or leave --align out"
            )
        tops = [p.ranges[symbol].max for p in profiles if symbol in p.ranges]
        top = max((size for size in tops if size is not None), default=None)
        if top is not None and step > top and None not in tops:
            raise UsageError(
                f"--align {symbol}={step}, but {symbol} is served up to {top}, below the first multiple; "
                f"align to at most {top}, or serve larger sizes"
            )
