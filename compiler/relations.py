"""How the sizes of outputs follow from the symbols of the inputs: found by running, checked against inference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.fitting import AxisFit, fit_axis
from trtc.profiles import Dim, dim_symbols, dim_text, dim_value, shape_text, sizes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trtc.compiler.trials import Outcome, Shape, Trials
    from trtc.compiler.workable import Workable
    from trtc.profiles import Range

CONSECUTIVE = 16
"""Sizes in a row for each symbol: strided models have stairs that fewer sizes do not show."""
_CONSECUTIVE_LIMIT = 260
_FAR = (21, 37, 61, 100, 257)
_JOINT = 16
_JOINT_SPREAD = 24
_JOINT_NEEDED = 8
_OTHER_VALUES = 6
_FAR_NEEDED = 2


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """What is known of one output before it was ever run.

    Attributes:
        name: of the output.
        declared: dims that the model file claims; None when it claims none.
        inferred: dims by shape inference, without trust in the claim; None when it tells none.
        data_shaped: the graph computes its shape from input values.
        tensor: False for sequences, optionals and maps.
    """

    name: str
    declared: tuple[int | str | None, ...] | None
    inferred: tuple[int | str | None, ...] | None
    data_shaped: bool = False
    tensor: bool = True


@dataclass(frozen=True, slots=True)
class Relations:
    """The result.

    Attributes:
        dims: by output name; None for an output whose rank varies or that is no tensor.
        valid_from: symbol to the smallest size that all relations hold for.
        notes: contradictions and axes without a relation, for people.
        runs: runs of the reference that the relations rest on.
        detail: which sizes were run.
    """

    dims: dict[str, tuple[Dim, ...] | None]
    valid_from: dict[str, int]
    notes: tuple[str, ...]
    runs: int
    detail: str


def find_relations(
    trials: Trials, workable: Workable, outputs: Sequence[OutputFacts], ranges: Mapping[str, Range]
) -> Relations:
    """Run the reference over sizes and fit every output axis.

    Args:
        trials: of the model; its source knows the symbols of ``workable``.
        workable: sizes that run.
        outputs: facts by output.
        ranges: the user's, by symbol; only sizes inside are run.
    """
    search = _Search(trials, workable, ranges)
    scans = {s: search.scan(s) for s in workable.rules}
    others = [trials.run(workable.base, variant) for variant in range(_OTHER_VALUES)]
    joint = search.joint(scans)
    notes: list[str] = []
    valid_from: dict[str, int] = {}
    dims: dict[str, tuple[Dim, ...] | None] = {}
    for facts in outputs:
        seen = _Seen(facts.name, scans, [o for o in (*others, *joint) if o.ran])
        found = _output_dims(search, facts, seen)
        dims[facts.name] = found.dims
        notes.extend(found.notes)
        for symbol, low in found.valid_from.items():
            valid_from[symbol] = max(low, valid_from.get(symbol, 0))
    notes.extend(
        f"output sizes follow one rule from {symbol}={low} on; below it the model gives other sizes"
        for symbol, low in valid_from.items()
    )
    if search.thin:
        notes.append(
            f"too few sizes of {', '.join(search.thin)} could be run in the time given; "
            "only output sizes that shape inference confirms are used"
        )
    detail = "; ".join(f"{s} {_sizes_run(points)}" for s, points in scans.items()) or "fixed sizes"
    if joint:
        detail += f"; {len(joint)} joint sizes held out"
    if trials.skipped:
        detail += f"; left out for time: {', '.join(dict.fromkeys(trials.skipped[:6]))}"
    runs = len(scans) and sum(len(points) for points in scans.values())
    return Relations(dims, valid_from, tuple(notes), runs + len(others) + len(joint), detail)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What runs showed of one output."""

    name: str
    scans: Mapping[str, Sequence[Outcome]]
    more: Sequence[Outcome]

    def outcomes(self) -> Iterator[Outcome]:
        for points in self.scans.values():
            yield from points
        yield from self.more

    def shapes(self) -> Iterator[Shape]:
        return (outcome.shapes[self.name] for outcome in self.outcomes())


@dataclass(frozen=True, slots=True)
class _Found:
    dims: tuple[Dim, ...] | None
    notes: tuple[str, ...] = ()
    valid_from: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Search:
    """Runs sizes of one model and remembers which symbols could not be run often enough."""

    trials: Trials
    workable: Workable
    ranges: Mapping[str, Range]
    thin: dict[str, None] = field(default_factory=dict)

    def scan(self, symbol: str, count: int = CONSECUTIVE) -> list[Outcome]:
        """Run one symbol at consecutive and far sizes, the others at their base; failures are left out."""
        sizes = self._sizes(symbol, count)
        essential = set(sizes[: count + _FAR_NEEDED])
        outcomes = {n: self.trials.try_run(self._at({symbol: n}), essential=n in essential) for n in sizes}
        if any(outcomes[n] is None for n in essential):
            self.thin[symbol] = None
        return [outcome for outcome in outcomes.values() if outcome is not None and outcome.ran]

    def _sizes(self, symbol: str, count: int) -> list[int]:
        rule, r = self.workable.rules[symbol], self.ranges.get(symbol)
        low, top = (rule.min, None) if r is None else (r.min, r.max)
        step = rule.multiple_of
        first = -(-low // step) * step
        sizes = [first + i * step for i in range(count)]
        sizes += [first + far // step * step if step > 1 else first + far for far in _FAR]
        sizes += [low, self.workable.base[symbol], *([] if top is None else [top])]
        ends = [end for end in (top, rule.max) if end is not None]
        return sorted({n for n in sizes if n >= low and (not ends or n <= min(ends))})

    def _at(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The base with some sizes moved, equal symbols together."""
        merged = {s: sizes[c] for s, c in self.workable.merges.items() if c in sizes}
        return {**self.workable.base, **sizes, **merged}

    def joint(self, scans: Mapping[str, Sequence[Outcome]]) -> list[Outcome]:
        """Run random sizes of all symbols at once, among those that ran alone: no symbol may stand for another."""
        moving = [s for s, points in scans.items() if len(points) > 1]
        if len(moving) < 2:  # noqa: PLR2004
            return []
        alone = {s: [o.sizes[s] for o in scans[s]][: _JOINT_SPREAD // len(moving)] for s in moving}
        rng = np.random.default_rng(1)
        found: list[Outcome] = []
        for _ in range(_JOINT + 2 ** min(len(moving), 4)):
            sizes = self._at({s: int(rng.choice(alone[s])) for s in moving})
            outcome = self.trials.try_run(sizes, essential=len(found) < _JOINT_NEEDED)
            if outcome is not None and outcome.ran:
                found.append(outcome)
        return found


def _output_dims(search: _Search, facts: OutputFacts, seen: _Seen) -> _Found:
    shapes = list(seen.shapes())
    ranks = {None if shape is None else len(shape) for shape in shapes}
    if not facts.tensor or None in ranks:
        return _Found(None)
    if facts.data_shaped and facts.inferred is None:
        return _Found(None, (f"output {facts.name!r}: its shape depends on the data; it is sized after each run",))
    if len(ranks) > 1:
        counts = " or ".join(str(rank) for rank in sorted(r for r in ranks if r is not None))
        note = f"output {facts.name!r} has {counts} axes, depending on values; it is sized after each run"
        return _Found(None, (note,))
    dims: list[Dim] = []
    notes: list[str] = []
    valid_from: dict[str, int] = {}
    for axis in range(len(shapes[0] or ())):
        inferred = _axis_of(facts.inferred, axis, len(shapes[0] or ()))
        fit = _fit(search, seen, axis, inferred=inferred, data_shaped=facts.data_shaped)
        fit = _inside_ranges(fit, search.ranges)
        dims.append(fit.dim)
        if fit.dim is None:
            notes.append(_unknown_note(facts, seen, axis))
        else:
            for symbol, low in fit.valid_from.items():
                valid_from[symbol] = max(low, valid_from.get(symbol, 0))
    notes.extend(_contradictions(facts, tuple(dims), search.workable))
    return _Found(tuple(dims), tuple(notes), valid_from)


def _fit(search: _Search, seen: _Seen, axis: int, *, inferred: int | str | None, data_shaped: bool) -> AxisFit:
    merges, base = search.workable.merges, search.workable.base
    points = [(o.sizes, _size(o, seen.name, axis)) for o in seen.outcomes()]
    known = merges.get(inferred, inferred) if isinstance(inferred, str) else inferred
    agreed = isinstance(known, int) or known in base
    if agreed and all(dim_value(known, sizes) == size for sizes, size in points):
        return AxisFit(known)  # inference and runs agree
    if data_shaped or search.thin:
        return AxisFit(None)
    scans = {s: [(o.sizes[s], _size(o, seen.name, axis)) for o in runs] for s, runs in seen.scans.items()}
    fit = fit_axis(scans, points)
    if not fit.more_sizes:
        return fit
    for symbol, count in fit.more_sizes.items():
        if count > _CONSECUTIVE_LIMIT:
            return AxisFit(None)
        more = search.scan(symbol, count)
        scans[symbol] = [(o.sizes[symbol], _size(o, seen.name, axis)) for o in more]
        points += [(o.sizes, _size(o, seen.name, axis)) for o in more]
    again = fit_axis(scans, points)
    sure = again.dim is not None and not again.more_sizes
    return again if sure or _whole_range(again, scans, search.ranges) else AxisFit(None)


def _whole_range(fit: AxisFit, scans: Mapping[str, Sequence[tuple[int, int]]], ranges: Mapping[str, Range]) -> bool:
    """Whether every size that the user allows was run: then an unsure formula is right where it is used."""
    if fit.dim is None:
        return False
    for symbol in fit.more_sizes:
        r = ranges.get(symbol)
        if r is None or r.max is None or not set(range(r.min, r.max + 1)) <= {n for n, _ in scans[symbol]}:
            return False
    return True


def _inside_ranges(fit: AxisFit, ranges: Mapping[str, Range]) -> AxisFit:
    """A formula that does not hold on all of a user's range is no formula."""
    bad = any(symbol in ranges and ranges[symbol].min < low for symbol, low in fit.valid_from.items())
    return AxisFit(None) if bad else fit


def _size(outcome: Outcome, name: str, axis: int) -> int:
    shape = outcome.shapes[name]
    return -1 if shape is None else shape[axis]


def _axis_of(dims: tuple[int | str | None, ...] | None, axis: int, rank: int) -> int | str | None:
    return dims[axis] if dims is not None and len(dims) == rank else None


def _unknown_note(facts: OutputFacts, seen: _Seen, axis: int) -> str:
    by_sizes: dict[tuple[tuple[str, int], ...], set[int]] = {}
    for outcome in seen.outcomes():
        by_sizes.setdefault(tuple(outcome.sizes.items()), set()).add(_size(outcome, seen.name, axis))
    varying = next(((sizes, found) for sizes, found in by_sizes.items() if len(found) > 1), None)
    start = f"output {facts.name!r} axis {axis}"
    if varying is not None:
        where = sizes_text(dict(varying[0])) if varying[0] else "equal input sizes"
        return f"{start}: its size depends on the data ({sorted(varying[1])} at {where})"
    if facts.data_shaped:
        return f"{start}: its size depends on the data (the graph computes it from values)"
    return f"{start}: no relation to the symbols fits the runs; it is sized after each run"


def _contradictions(facts: OutputFacts, found: tuple[Dim, ...], workable: Workable) -> Iterator[str]:
    """Where the file's claim does not hold: runs decide."""
    if facts.declared is None:
        return
    if len(facts.declared) != len(found):
        yield (
            f"output {facts.name!r} is declared with {len(facts.declared)} axes {shape_text(facts.declared)}, "
            f"but runs give {shape_text(found)}; the runs are used"
        )
        return
    for axis, (claim, dim) in enumerate(zip(facts.declared, found, strict=True)):
        known = workable.merges.get(claim, claim) if isinstance(claim, str) else claim
        if known is None or (isinstance(known, str) and known not in workable.base) or known == dim:
            continue
        if isinstance(known, str) and not dim_symbols(dim) and _pinned(known, workable):
            continue
        yield (
            f"output {facts.name!r} axis {axis} is declared {dim_text(known)}, but runs give {dim_text(dim)} "
            f"(whole shape {shape_text(found)}); the runs are used"
        )


def _pinned(symbol: str, workable: Workable) -> bool:
    rule = workable.rules.get(symbol)
    return rule is not None and rule.fixed


def _sizes_run(outcomes: Sequence[Outcome]) -> str:
    """Write sizes as stretches, such as ``1..16, 33, 61``; only what moved in the scan is told."""
    if not outcomes:
        return "not run"
    moved = [s for s in outcomes[0].sizes if len({o.sizes[s] for o in outcomes}) > 1]
    if not moved:
        return "one size"
    sizes = sorted({o.sizes[moved[0]] for o in outcomes})
    parts: list[list[int]] = []
    for size in sizes:
        if parts and size == parts[-1][-1] + 1:
            parts[-1].append(size)
        else:
            parts.append([size])
    return ", ".join(f"{p[0]}..{p[-1]}" if len(p) > 1 else f"{p[0]}" for p in parts)
