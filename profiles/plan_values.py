"""What a ladder has to keep to, and what planning found: the values around the planner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from trtc.profiles.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from trtc.profiles.ladder import Ladder
    from trtc.profiles.ranges import Range

    BytesOf: TypeAlias = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]

MOST_PROFILES = 256
"""The longest ladder that is planned."""
Rare: TypeAlias = Literal["cover", "catch_all", "refuse"]
Form: TypeAlias = Literal["ranges", "static"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What a sum over all profiles may reach: bytes of the engines, or seconds of building.

    Attributes:
        limit: at most this much.
        fixed: what is spent with no profile at all, such as weights that all profiles share.
        each: what every profile adds.

    Raises:
        UsageError: for negative figures, or an ``each`` of 0.
    """

    limit: float
    fixed: float
    each: float

    def __post_init__(self) -> None:
        if not (self.limit >= 0 and self.fixed >= 0 and self.each > 0):
            raise UsageError(
                f"budget {self.limit} with {self.fixed} fixed and {self.each} a profile; "
                "give figures of 0 or more, and more than 0 a profile"
            )


@dataclass(frozen=True, slots=True)
class ArenaBudget:
    """What the largest profile may need: profiles share one region, so their largest layout counts.

    Attributes:
        limit_bytes: at most this much, for one slot.
        bytes_of: bytes of the layout at each row of sizes, int64 [n, k] in the order of the traffic's symbols
            to float64 [n]; it must not fall when a size grows.
    """

    limit_bytes: float
    bytes_of: BytesOf


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the ladder has to keep to.

    Attributes:
        max_profiles: at most this many.
        padded: symbols that may be padded; all others run at their own size.
        form: ``ranges``: profiles reach from each symbol's lowest size to the bucket and overlap, and a symbol that may
            not be padded takes its whole range in each; ``static``: one size each, so every size of a symbol that may
            not be padded needs profiles of its own.
        align: buckets of these symbols are multiples of these numbers.
        limits: the least and largest size of each symbol that the model takes; a symbol without one is bounded by the
            traffic, and its profiles start at 1.
        rare: ``cover``: every size in the traffic is served; ``catch_all``: one of the profiles reaches the largest of
            ``limits``, so that every size that the model takes is served; ``refuse``: the requests that cost most may
            be refused, up to ``refuse_share`` of all.
        refuse_share: from 0 to below 1; of the traffic's weight.
        engine_bytes: budget, where there is one.
        build_s: budget, where there is one.
        arena_bytes: budget, where there is one.
        overhead_s: seconds that every call takes on top of its cost.
        within: of the ladders with 1 to ``max_profiles`` profiles the shortest is chosen that costs at most this share
            more than the cheapest; 0 takes the cheapest.

    Raises:
        UsageError: for figures outside these ranges.
    """

    max_profiles: int = 8
    padded: frozenset[str] = frozenset()
    form: Form = "ranges"
    align: dict[str, int] = field(default_factory=dict)
    limits: dict[str, Range] = field(default_factory=dict)
    rare: Rare = "cover"
    refuse_share: float = 0.0
    engine_bytes: Budget | None = None
    build_s: Budget | None = None
    arena_bytes: ArenaBudget | None = None
    overhead_s: float = 0.0
    within: float = 0.02

    def __post_init__(self) -> None:
        if not 1 <= self.max_profiles <= MOST_PROFILES:
            raise UsageError(f"at most {self.max_profiles} profiles; give a number from 1 to {MOST_PROFILES}")
        odd = {symbol: step for symbol, step in self.align.items() if step < 1}
        if odd:
            raise UsageError(f"alignment {odd}: buckets are multiples of 1 or more")
        if not 0 <= self.refuse_share < 1 or (self.refuse_share > 0) != (self.rare == "refuse"):
            raise UsageError(
                f"a share of {self.refuse_share} may be refused, with rare sizes set to {self.rare!r}; "
                "give a share above 0 and below 1 together with 'refuse', and none otherwise"
            )
        if not (self.overhead_s >= 0 and self.within >= 0):
            raise UsageError(f"overhead {self.overhead_s} s, within {self.within}: both are 0 or more")


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The best ladder of one length.

    Attributes:
        profiles: how many it has.
        expected_s: mean seconds of a served request, overhead included.
        waste: padded minus useful elements, over padded elements.
        lower_s: no ladder of this length can have a lower ``expected_s``.
        proven: ``expected_s`` is ``lower_s`` up to rounding (a millionth).
    """

    profiles: int
    expected_s: float
    waste: float
    lower_s: float
    proven: bool

    @property
    def gap(self) -> float:
        """How much better a ladder could be at most, as a share of ``expected_s``."""
        return 0.0 if self.proven or not self.expected_s else max(1.0 - self.lower_s / self.expected_s, 0.0)


@dataclass(frozen=True, slots=True)
class PlanResult:
    """The ladder that was chosen, and what it will give.

    Attributes:
        ladder: profiles by rising cost; ``cost_s`` is the model's cost of each bucket.
        point: the ladder's place on the curve: expected seconds, waste, lower bound, gap, proven or not.
        curve: one point for each number of profiles that is possible.
        reason: why this number was chosen, as a sentence.
        exact_s: mean seconds if every request ran at its own sizes: no ladder is below it.
        refused: share of the weight that no profile takes.
        notes: what else is worth knowing.
    """

    ladder: Ladder
    point: CurvePoint
    curve: tuple[CurvePoint, ...]
    reason: str
    exact_s: float
    refused: float = 0.0
    notes: tuple[str, ...] = ()
