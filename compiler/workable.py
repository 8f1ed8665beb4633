"""Which sizes a model really runs at: smallest, largest, multiples, and symbols that must be equal.

A symbol says only that a size may vary; convolutions, reshapes and strided decoders allow fewer sizes than that. The
search runs the reference at small sizes and reports what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.size_rule import SizeRule, bisect_high, bisect_low, classify, find_top
from trtc.profiles import ModelError, ProfileError, Range, sizes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trtc.compiler.trials import Outcome, Trials

__all__ = ["SizeRule", "Workable", "find_workable_sizes"]

_LADDER = (2, 3, 4, 5, 6, 8, 1, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 224, 256, 320)
_LADDER_MORE = (384, 512, 576, 640, 768, 1024)
_DENSE_TOP = 64
_DENSE = (*range(1, _DENSE_TOP + 1), 72, 80, 96, 112, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512)
_MIXES = 60
_SMALL = 2
_PARTNERS = 8


@dataclass(frozen=True, slots=True)
class Workable:
    """The result of the search.

    Attributes:
        base: one small size for each symbol; together they run.
        rules: by symbol; merged symbols have none of their own.
        merges: symbol to the symbol that it must be equal to.
        notes: for people.
    """

    base: dict[str, int]
    rules: dict[str, SizeRule]
    merges: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def find_workable_sizes(
    trials: Trials, symbols: Sequence[str], ranges: Mapping[str, Range], hints: Sequence[int] = ()
) -> Workable:
    """Search.

    Args:
        trials: of the model; its source must know every symbol.
        symbols: of the inputs, in order.
        ranges: the user's; only sizes inside are tried.
        hints: numbers that the graph reshapes to; a size may have to be a multiple of one.

    Raises:
        ModelError: no size was found that runs; the node's error and what to give are in the message. Also when
            one end of a user's range does not run.
    """
    base = _shrunk(trials, _first_base(trials, symbols, ranges, hints), ranges)
    rules = {s: _scan(trials, base, (s,), ranges.get(s)) for s in symbols}
    merges = _merge_stuck(trials, base, rules)
    for canonical in dict.fromkeys(merges.values()):
        group = (canonical, *(s for s, c in merges.items() if c == canonical))
        bounds = _intersection(group, ranges)
        rules[canonical] = _scan(trials, base, group, bounds)
    rules = {s: r for s, r in rules.items() if s not in merges}
    base, rules = _settle(trials, _Space(merges, ranges), base, rules)
    for symbol, r in ranges.items():
        if symbol in symbols:
            _check_ends(trials, base, _group(symbol, merges), r, rules[merges.get(symbol, symbol)])
    return Workable(base, rules, merges, tuple(_notes(rules, merges)))


@dataclass(frozen=True, slots=True)
class _Space:
    merges: Mapping[str, str]
    ranges: Mapping[str, Range]


def _group(symbol: str, merges: Mapping[str, str]) -> tuple[str, ...]:
    canonical = merges.get(symbol, symbol)
    return (canonical, *(s for s, c in merges.items() if c == canonical))


def _intersection(group: Sequence[str], ranges: Mapping[str, Range]) -> Range | None:
    """Sizes that every symbol of a group may take."""
    given = [ranges[s] for s in group if s in ranges]
    if not given:
        return None
    low = max(r.min for r in given)
    tops = [r.max for r in given if r.max is not None]
    if not tops:
        return Range(low, None, None)
    if low > min(tops):
        listed = ", ".join(f"{s} {ranges[s]}" for s in group if s in ranges)
        raise ProfileError(f"{' and '.join(group)} must be equal, but their ranges share no size: {listed}")
    return Range(low, low, min(tops))


def _first_base(
    trials: Trials, symbols: Sequence[str], ranges: Mapping[str, Range], hints: Sequence[int]
) -> dict[str, int]:
    last = ""
    budget_s = trials.left_s
    for sizes in _base_candidates(symbols, ranges, hints):
        outcome = trials.run(sizes)
        if outcome.ran:
            return dict(sizes)
        last = f"at {sizes_text(sizes)}: {outcome.error}"
        if trials.left_s < budget_s / 2:
            break
    sample = f"--samples FILE.npz with inputs that run{', --dim SYMBOL=SIZE' if symbols else ''}"
    raise ModelError(
        f"no sizes found at which the model runs; {last or 'nothing was tried'}; "
        f"give {sample}, or --val-range INPUT:[LOW,HIGH] for inputs whose values matter"
    )


def _shrunk(trials: Trials, base: dict[str, int], ranges: Mapping[str, Range]) -> dict[str, int]:
    """Bring symbols down to a small size where that runs, alone or with one other: smaller trials are cheaper."""
    for symbol in tuple(base):
        size = base[symbol]
        small = _clamp(_SMALL, ranges.get(symbol))
        partners = [s for s, n in base.items() if s != symbol and n == size][:_PARTNERS]
        for group in ((symbol,), *((symbol, other) for other in partners)):
            wanted = {**base, **dict.fromkeys(group, small)}
            inside = all(s not in ranges or ranges[s].holds(small) for s in group)
            if size > small and inside and trials.run(wanted).ran:
                base = wanted
                break
    return base


def _base_candidates(
    symbols: Sequence[str], ranges: Mapping[str, Range], hints: Sequence[int]
) -> Iterator[dict[str, int]]:
    seen = set()

    def fresh(sizes: dict[str, int]) -> bool:
        key = tuple(sizes.values())
        return not (key in seen or seen.add(key))  # type: ignore[func-returns-value]

    def clamped(wanted: Mapping[str, int]) -> dict[str, int]:
        return {s: _clamp(size, ranges.get(s)) for s, size in wanted.items()}

    ladder = (*_LADDER, *hints, *_LADDER_MORE)
    for size in ladder:
        if fresh(sizes := clamped(dict.fromkeys(symbols, size))):
            yield sizes
    for first in (1, 2) if len(symbols) > 1 else ():
        for size in ladder:
            if fresh(sizes := clamped({**dict.fromkeys(symbols, size), symbols[0]: first})):
                yield sizes
    rng = np.random.default_rng(0)
    for _ in range(_MIXES if len(symbols) > 1 else 0):
        if fresh(sizes := clamped({s: int(rng.choice(ladder)) for s in symbols})):
            yield sizes


def _clamp(size: int, r: Range | None) -> int:
    if r is None:
        return size
    return max(r.min, size if r.max is None else min(size, r.max))


def _scan(trials: Trials, base: Mapping[str, int], group: tuple[str, ...], r: Range | None) -> SizeRule:
    """Find the rule of symbols that move together, all others at their base."""
    start = base[group[0]]
    nearby = max(_DENSE_TOP, 2 * start + 1)
    errors: dict[int, str] = {}

    def runs(size: int) -> bool | None:
        if r is not None and not r.holds(size):
            return None
        # Once a size failed, those between it and the ones that ran decide where the limit is: they are not left out.
        essential = size <= nearby or bool(errors)
        outcome = trials.try_run({**base, **dict.fromkeys(group, size)}, essential=essential)
        if outcome is None:
            return None
        if not outcome.ran:
            errors[size] = outcome.error
        return outcome.ran

    quick = [start + 1, start + 2, start + 3, start + 5, start + 8, 2 * start + 1, 37, 61]
    if all(runs(size) is not False for size in quick):
        low = 1 if r is None else max(1, r.min)
        rule = SizeRule(bisect_low(runs, low, start))
    else:
        around = range(max(1, start - 4), start + 9)
        sizes = sorted({*_DENSE, *around, 2 * start, 3 * start, 4 * start})
        worked = {size: ran for size in sizes if (ran := runs(size)) is not None}
        rule = classify(worked, start, runs)
    if rule.max is None and (r is None or r.max is None):
        rule = find_top(rule, runs)
    outside = [s for s in sorted(errors) if not rule.holds(s)]
    nearest = min(
        outside, key=lambda s: min(abs(s - end) for end in (rule.min, rule.max) if end is not None), default=None
    )
    beyond = min((s for s in errors if s > start and rule.holds(s)), default=None)
    return replace(rule, reason="" if nearest is None else errors[nearest], fails_at=beyond)


def _merge_stuck(trials: Trials, base: Mapping[str, int], rules: Mapping[str, SizeRule]) -> dict[str, str]:
    """Find symbols that run only at the size of another: they must be equal."""
    stuck = [s for s, rule in rules.items() if rule.fixed]
    merges: dict[str, str] = {}
    for symbol in stuck:
        if symbol in merges or symbol in merges.values():
            continue
        others = [s for s in rules if s not in merges and s != symbol and base[s] == base[symbol]]
        group = _moving_group(trials, base, symbol, [s for s in others if s in stuck])
        group = group or _moving_group(trials, base, symbol, others)
        merges.update(dict.fromkeys(group, symbol))
    return merges


def _moving_group(trials: Trials, base: Mapping[str, int], symbol: str, others: Sequence[str]) -> list[str]:
    """The symbols that must move with ``symbol``; empty when moving all of them does not help either."""
    for size in (base[symbol] + 1, base[symbol] + 3):  # no multiples: a reshape may hide a mismatch there

        def moves(group: Sequence[str], size: int = size) -> bool:
            outcome = trials.try_run({**base, **dict.fromkeys((symbol, *group), size)}, essential=True)
            return outcome is not None and outcome.ran

        if not others or not moves(others):
            continue
        group = list(others)
        for other in others:
            rest = [s for s in group if s != other]
            if moves(rest):
                group = rest
        return group
    return []


def _settle(
    trials: Trials, space: _Space, base: Mapping[str, int], rules: dict[str, SizeRule]
) -> tuple[dict[str, int], dict[str, SizeRule]]:
    """Move the base to the smallest ordinary sizes, and look again where the old base misled."""
    for _ in range(2):
        wanted = dict(base)
        for symbol, rule in rules.items():
            bounds = _intersection(_group(symbol, space.merges), space.ranges)
            top = rule.max if bounds is None or bounds.max is None else bounds.max
            size = rule.min if rule.min > 1 else min(2, top if top is not None else 2)
            wanted.update(dict.fromkeys(_group(symbol, space.merges), max(rule.min, size)))
        if not trials.run(wanted).ran:
            return dict(base), rules
        changed = wanted != dict(base)
        base = wanted
        if not changed:
            break
        for symbol, rule in rules.items():
            group = _group(symbol, space.merges)
            outcomes = [_at(trials, base, group, size) for size in rule.sizes(4, None)]
            if any(o is not None and not o.ran for o in outcomes):
                rules[symbol] = _scan(trials, base, group, _intersection(group, space.ranges))
    return dict(base), rules


def _at(trials: Trials, base: Mapping[str, int], group: Sequence[str], size: int) -> Outcome | None:
    return trials.try_run({**base, **dict.fromkeys(group, size)}, essential=True)


def _check_ends(trials: Trials, base: Mapping[str, int], group: Sequence[str], r: Range, rule: SizeRule) -> None:
    """Both ends of a user's range must run."""

    def runs(size: int) -> bool:
        outcome = _at(trials, base, group, size)
        return outcome is None or outcome.ran

    for size in dict.fromkeys(n for n in (r.min, r.opt, r.max) if n is not None):
        if runs(size):
            continue
        if size > rule.min and not rule.fixed:
            step = rule.multiple_of
            top = bisect_high(lambda n: runs(n * step), base[group[0]] // step, size // step)  # noqa: B023
            rule = replace(rule, max=top * step) if size % step == 0 and top is not None else rule
        error = trials.run({**base, **dict.fromkeys(group, size)}).error
        raise ModelError(
            f"{group[0]}={size} is in the range {r}, but the model cannot run it: {error}; "
            f"sizes that run: {rule}; give --dim {group[0]}={_typed(rule)}"
        )


def _typed(rule: SizeRule) -> str:
    """Write a rule as ``--dim`` takes it."""
    return str(rule.min) if rule.fixed else f"{rule.min}:{'MAX' if rule.max is None else rule.max}"


def _notes(rules: Mapping[str, SizeRule], merges: Mapping[str, str]) -> Iterator[str]:
    for symbol, canonical in merges.items():
        yield (
            f"symbols {canonical!r} and {symbol!r} must be equal (other sizes do not run); "
            f"{canonical!r} is used for both"
        )
    for symbol, rule in rules.items():
        if rule.fixed and rule.reason:
            yield (
                f"{symbol} runs only at {rule.min}: {rule.reason}; build with --dim {symbol}={rule.min}, "
                "or export the model again without the constant"
            )
        elif rule.reason:
            yield f"{symbol} runs at {rule}; outside: {rule.reason}"
        if rule.fails_at is not None:
            yield (
                f"{symbol}={rule.fails_at} does not run, and where the limit lies was not searched for lack of time; "
                f"give a range, such as --dim {symbol}={rule.min}..{rule.fails_at - 1}"
            )
