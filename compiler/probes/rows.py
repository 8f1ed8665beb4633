"""Are rows of a batch independent? Each row alone against the same row among neighbours that are unlike it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trtc.compiler.probes.apart import rows_stay_apart
from trtc.compiler.probes.cases import PadCase, small_size
from trtc.compiler.probes.domain import without_zero_rows
from trtc.compiler.probes.experiment import Experiment
from trtc.compiler.probes.reach import carriers
from trtc.compiler.probes.structure import row_obstacles
from trtc.compiler.probes.subject import ProbeOptions, Runs, is_floating, is_number, scaled
from trtc.compiler.probes.trial import PaddedRuns, Worst
from trtc.compiler.probes.widen import widened
from trtc.engines.manifest import Evidence
from trtc.profiles import PadRule, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.probes.subject import Feeds, Reference, Subject

_DEFAULTS = ProbeOptions()
_KINDS = ("plain", "loud", "plain", "zero", "quiet", "plain", "sparse", "plain")
"""The rows of a pool. Zeros alone would miss a shared quantization range, plain rows alone a shared mean."""
_JUDGED = frozenset(["plain", "sparse"])
"""The others are neighbours only: values a thousand times out of the ordinary make rounding large in deep models."""
_ARRANGEMENTS = ((0, 1, 2, 3, 4, 5, 6, 7), (5, 0, 0, 6, 1, 2, 4, 3), (3, 7, 1, 4, 0, 0, 2, 6))
"""Orders in which a pool's rows are put into batches; unlike rows stand side by side, and one repeats."""


_APART = "every operator works element by element, so rows cannot meet whatever their values"


def probe_rows(subject: Subject, reference: Reference, symbol: str, options: ProbeOptions = _DEFAULTS) -> Evidence:
    """Examine whether rows along ``symbol`` influence each other.

    Args:
        subject: the model, its ladder, its values.
        reference: runs the model.
        symbol: the batch axis; it may be any axis of an input.
        options: how much to try.

    Returns:
        Accepted when each row alone equals that row in every batch, and repeated rows as padding change nothing; its
        domain then holds the values that padding with rows was exact for.
        Inputs without the symbol are shared by all rows.

    Raises:
        UsageError: for an unknown symbol.
    """
    if symbol not in subject.signature.symbols:
        raise UsageError(unknown_name("symbol", symbol, subject.signature.symbols))
    evidence = Evidence(kind="rows", symbol=symbol, accepted=False, runs=0, samples=subject.values.describe())
    obstacles = row_obstacles(subject, symbol)
    if obstacles:
        return msgspec.structs.replace(evidence, detail="; ".join(obstacles))
    experiment = _Rows(subject, reference, symbol, options)
    for sizes in _other_sizes(subject, symbol):
        pool = experiment.make_pool(sizes)
        for batch, order in experiment.batches(len(pool)):
            experiment.try_batch([pool[i] for i in order[:batch]], sizes)
        experiment.try_padding(sizes)
    padded = Experiment(subject, reference, [PadRule(symbol, "rows", {})], options)
    if experiment.worst.passed and not experiment.broken:
        _try_buckets(padded)
        experiment.worst.include(padded.worst)
    worst, reason = experiment.worst, ""
    if worst.comparisons == 0:
        reason = f"no batch of two or more rows along {symbol} could be compared with its rows alone"
    elif not worst.passed:
        reason = f"rows influence each other: {worst.failures()}"
    accepted = worst.passed and not experiment.broken
    apart = accepted and rows_stay_apart(subject, symbol)
    if accepted and not apart:
        padded.bounds.include_all(widened(padded))
    return msgspec.structs.replace(
        evidence,
        accepted=accepted,
        runs=experiment.runs.count + padded.padded.runs.count,
        findings=worst.findings(),
        domain=padded.bounds.domain() if accepted and not apart else {},
        detail="; ".join(filter(None, [reason, _APART if apart else "", experiment.broken, experiment.runs.note()])),
    )


def _try_buckets(padded: Experiment) -> None:
    """Pad batches to their buckets as the runtime does: other sizes than the pool's, and the values of the domain."""
    padded.try_generated()
    padded.try_full_masks()
    padded.try_zero_rows()


@dataclass(frozen=True, slots=True)
class _Row:
    """One row, what it gives alone, and whether its answer in a batch is judged."""

    feeds: Feeds
    alone: Feeds
    judged: bool


class _Rows:
    """Trials along one symbol.

    Attributes:
        broken: why batches could not be made at all; empty when they could.
    """

    def __init__(self, subject: Subject, reference: Reference, symbol: str, options: ProbeOptions) -> None:
        self._subject = subject
        self._symbol = symbol
        self._options = options
        self._carriers = carriers(subject.signature, symbol)
        self._in_axis = _axes(subject.signature.inputs, symbol)
        self._out_axis = _axes(subject.signature.outputs, symbol)
        self._rng = np.random.default_rng(options.seed)
        self._top = _largest(subject, symbol)
        self.runs = Runs(reference)
        self.worst = Worst()
        self.broken = ""

    def make_pool(self, sizes: dict[str, int]) -> list[_Row]:
        """Make unlike single rows, with the outputs of each alone; rows that cannot run alone are left out."""
        alone = {**sizes, self._symbol: 1}
        shared: Feeds = {}
        pool: list[_Row] = []
        for kind in _KINDS:
            feeds = self._subject.values.feeds(alone, self._rng)
            shared = shared or {n: v for n, v in feeds.items() if n not in self._carriers}
            feeds = {n: self._row(v, kind) if n in self._carriers else shared[n] for n, v in feeds.items()}
            outputs = self.runs.attempt(feeds, alone)
            if outputs is not None:
                pool.append(_Row(feeds, outputs, judged=kind in _JUDGED))
        return pool

    def batches(self, count: int) -> list[tuple[int, tuple[int, ...]]]:
        """Choose batch sizes and the rows of each, from a pool of ``count`` rows."""
        rows = [b for b in self._options.batch_rows if self._top is None or b <= self._top]
        orders = [tuple(i for i in order if i < count) for order in _ARRANGEMENTS]
        return [(b, order) for b in rows for order in orders if len(order) >= b]

    def try_batch(self, rows: Sequence[_Row], sizes: dict[str, int]) -> None:
        """Run rows together and compare each with itself alone."""
        batch = {**sizes, self._symbol: len(rows)}
        first = rows[0].feeds
        feeds = {
            name: np.concatenate([row.feeds[name] for row in rows], axis=self._in_axis[name])
            if name in self._in_axis
            else value
            for name, value in first.items()
        }
        outputs = self.runs.attempt(feeds, batch)
        if outputs is None:
            # Every row ran alone, so it is the batch that the model cannot take.
            self.broken = self.broken or f"{len(rows)} rows that run alone do not run together"
            return
        for i, row in enumerate(rows):
            if row.judged:
                cut = {name: self._cut(name, value, i, len(rows)) for name, value in outputs.items()}
                self.worst.compare(cut, row.alone, self._options.tolerance, batch)

    def try_padding(self, sizes: dict[str, int]) -> None:
        """Repeat the last row as padding, as the runtime does, and compare the real rows."""
        rule = PadRule(self._symbol, "rows", {})
        padded = PaddedRuns(self.runs, self._subject.signature, [rule])
        for real, full in ((1, 3), (2, 5), (1, 2)):
            if self._top is not None and full > self._top:
                continue
            case = PadCase({**sizes, self._symbol: real}, {**sizes, self._symbol: full})
            feeds = self._subject.values.feeds(case.sizes, self._rng)
            exact = self.runs.attempt(feeds, case.sizes)
            got = None if exact is None else padded.run(feeds, case)
            if exact is not None and got is not None:
                self.worst.compare(got, exact, self._options.tolerance, case.run_sizes)

    def _cut(self, name: str, value: Any, row: int, rows: int) -> Any:
        """Take one row of an output; an output that does not have as many rows is handed on whole, and will differ."""
        axis = self._out_axis.get(name)
        if axis is None or np.ndim(value) <= axis or np.shape(value)[axis] != rows:
            return value
        return np.take(value, [row], axis=axis)

    def _row(self, value: Any, kind: str) -> Any:
        if not is_number(value):
            return value
        if kind == "zero":
            return np.zeros_like(value)
        if is_floating(value) and kind in ("loud", "quiet"):
            scale = self._options.row_scale if kind == "loud" else 1 / self._options.row_scale
            return scaled(value, scale)
        if kind == "sparse" and value.ndim > 1 and value.dtype.kind in "biu" and value.size and value.max() <= 1:
            keep = self._rng.integers(0, 2, value.shape)
            return without_zero_rows({"mask": (value * keep).astype(value.dtype)})["mask"]
        return value


def _other_sizes(subject: Subject, symbol: str) -> list[dict[str, int]]:
    """Choose two sets of sizes for the other symbols, inside the ladder's first profile."""
    ranges = subject.ladder.profiles[0].ranges
    found: list[dict[str, int]] = []
    for k in range(2):
        sizes = {n: small_size(r, 2 * k, subject.multiples.get(n, 1)) for n, r in ranges.items() if n != symbol}
        if sizes not in found:
            found.append(sizes)
    return found


def _largest(subject: Subject, symbol: str) -> int | None:
    tops = [p.ranges[symbol].max for p in subject.ladder.profiles if symbol in p.ranges]
    return None if not tops or None in tops else max(top for top in tops if top is not None)


def _axes(specs: Sequence[Any], symbol: str) -> dict[str, int]:
    return {spec.name: spec.dims.index(symbol) for spec in specs if spec.dims and symbol in spec.dims}
