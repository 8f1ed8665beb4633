"""What a plan is made for: which symbols, between which sizes, and where costs are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

from trtc.compiler.cost_grid import Axis
from trtc.compiler.plan_options import check_align
from trtc.profiles import Profile, Range, UsageError, unknown_name
from trtc.profiles.plan_space import check_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from trtc.compiler.analysis import Analysis, Declared
    from trtc.compiler.options import Setting
    from trtc.profiles.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is planned, and between which sizes.

    Attributes:
        traffic: over symbols of the signature.
        limits: the sizes that may be served.
        steps: the model takes multiples of these numbers only.
        profile: everything that may be served, as one profile.
        trial: the same up to the middle of the traffic: padding that changes answers is mostly found out there already,
            long before the costly sizes are run.
        axes: sizes that costs are wanted for.
        fixed: sizes, for measuring, of the symbols that the traffic does not speak of.
    """

    traffic: Traffic
    limits: dict[str, Range]
    steps: dict[str, int]
    profile: Profile
    trial: Profile
    axes: tuple[Axis, ...]
    fixed: dict[str, int]

    @classmethod
    def of(cls, analysis: Analysis, traffic: Traffic, stated: AbstractSet[str], setting: Setting) -> Bounds:
        """Settle them.

        What was asked for is served: the traffic, the ranges that the options state, and with a catch-all whatever the
        model takes. Sizes that nobody asked for would have to be compared, and cost time, for nothing.

        Args:
            analysis: with the ranges that the model takes, or the options state.
            traffic: as read.
            stated: symbols whose largest size the options state.
            setting: of the build.

        Raises:
            UsageError: for symbols that the model does not have, and options that contradict the traffic.
        """
        traffic = _traffic_of(analysis, traffic)
        align = _aligned(analysis, setting)
        ranges = _one_profile(analysis)
        padded = {rule.symbol for rule in analysis.plan.padding}
        everything = setting.options.plan.rare == "catch_all"
        limits, axes = {}, []
        for symbol in traffic.symbols:
            r = ranges[symbol]
            rule = analysis.found.workable.get(symbol)
            step = 1 if rule is None else rule.multiple_of
            sizes, _ = traffic.marginal(symbol)
            if symbol not in padded and (sizes % step).any():
                raise UsageError(
                    f"the traffic has {symbol}={int(sizes[sizes % step > 0][0])}, but the model takes multiples of "
                    f"{step}; add --pad {symbol}, or leave these requests out"
                )
            unit = lcm(step, align.get(symbol, 1))
            wanted = -(-int(sizes[-1]) // unit) * unit
            top = wanted if r.max is None else min(wanted, r.max)
            high = (r.max or top) if symbol in stated or everything else top
            limits[symbol] = Range(max(r.min, 1), high, high)
            low = min(max(-(-int(sizes[0]) // step) * step, r.min), top)
            axes.append(Axis(symbol, low, top, step))
        check_limits(traffic, limits)
        rest = {s: r for s, r in ranges.items() if s not in limits}
        tops = {axis.symbol: axis.high for axis in axes}
        covered = {
            s: (limits[s] if everything else Range(limits[s].min, tops[s], tops[s])) if s in limits else r
            for s, r in ranges.items()
        }
        base = analysis.found.base
        fixed = {s: r.opt if r.opt is not None else max(base.get(s, 1), r.min) for s, r in rest.items()}
        steps = {axis.symbol: axis.step for axis in axes}
        trial = {
            s: _up_to(r, traffic.quantiles(s, [0.5])[0], steps[s]) if s in steps else r for s, r in covered.items()
        }
        return cls(traffic, limits, steps, Profile("p0", covered), Profile("p0", trial), tuple(axes), fixed)


def stated_symbols(analysis: Analysis, declared: Declared) -> frozenset[str]:
    """Symbols of the signature whose largest size the options state."""
    merges = analysis.found.merges
    return frozenset(merges.get(s, s) for p in declared.profiles for s, r in p.ranges.items() if r.max is not None)


def _up_to(r: Range, size: int, step: int) -> Range:
    """End a range at a size, rounded up to a multiple, with some room between its ends."""
    top = max(-(-size // step) * step, r.min + step)
    return r if r.max is not None and r.max <= top else Range(r.min, top, top)


def _traffic_of(analysis: Analysis, traffic: Traffic) -> Traffic:
    """Bring the traffic to the symbols of the signature: some names of the file may have been found to be one size."""
    merges, symbols = analysis.found.merges, analysis.plan.signature.symbols
    for symbol in traffic.symbols:
        if symbol not in symbols and symbol not in merges:
            raise UsageError(f"the traffic has an {unknown_name('symbol', symbol, symbols)}")
    kept = [symbol for symbol in traffic.symbols if symbol in symbols]
    for symbol in set(traffic.symbols) - set(kept):
        other = merges[symbol]
        if other not in traffic.symbols:
            raise UsageError(f"the traffic counts {symbol}, which is the size {other} of this model; call it {other}")
        if (traffic.sizes[:, traffic.column(symbol)] != traffic.sizes[:, traffic.column(other)]).any():
            raise UsageError(f"the traffic has requests where {symbol} and {other} differ; this model takes them equal")
    return traffic.restricted([symbol for symbol in symbols if symbol in kept])


def _aligned(analysis: Analysis, setting: Setting) -> dict[str, int]:
    """The alignment asked for: of symbols that may be padded, for others have no bucket of their own."""
    align = setting.options.plan.align
    check_align(align, analysis.plan.signature.symbols, {rule.symbol for rule in analysis.plan.padding}, ())
    return dict(align)


def _one_profile(analysis: Analysis) -> Mapping[str, Range]:
    profiles = analysis.plan.ladder.profiles
    if len(profiles) > 1:
        raise UsageError(
            f"--traffic chooses the profiles, but the options state {len(profiles)}; give one range for each symbol, "
            "such as --dim seq=1..512, or leave --traffic out"
        )
    return profiles[0].ranges


def rounded(bounds: Bounds, requests: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """Sizes that the model takes as they are."""
    return [
        bounds.fixed | {s: -(-size // bounds.steps[s]) * bounds.steps[s] for s, size in sizes.items()}
        for sizes in requests
    ]
