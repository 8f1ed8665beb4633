"""Trials of padding: the same request exact, and padded and trimmed, at many sizes and with many values."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.probes.cases import PadCase, pad_cases, sample_cases
from trtc.compiler.probes.domain import (
    BOX_VARIANTS,
    Bounds,
    has_zero_row,
    in_box,
    mask_like,
    shrunk,
    with_ones,
    with_zero_rows,
    without_zero_rows,
)
from trtc.compiler.probes.subject import ProbeOptions, Runs, is_number, sizes_of
from trtc.compiler.probes.trial import PaddedRuns, Worst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.probes.subject import Feeds, Reference, Subject
    from trtc.profiles import PadRule

_FAINT_STEPS = 14
_FAINT_DECADES = 10.0
"""Floats are tried down to this many powers of ten below the largest generated ones, in this many steps."""


class Experiment:
    """Trials of one group of rules.

    Attributes:
        subject, options: as given.
        padded: runs the reference padded by the rules.
        cases: sizes that are tried.
        runnable: those of them that the reference can run.
        bounds: values that padding was exact for.
        worst: the worst comparison of each output.
    """

    def __init__(self, subject: Subject, reference: Reference, rules: Sequence[PadRule], options: ProbeOptions) -> None:
        self.subject = subject
        self.options = options
        self.padded = PaddedRuns(Runs(reference), subject.signature, rules)
        self.cases = pad_cases(subject, [rule.symbol for rule in rules], options.max_cases)
        self.runnable: list[PadCase] = []
        self.bounds = Bounds()
        self.worst = Worst()
        self.rng = np.random.default_rng(options.seed)
        self._skipped_samples = 0

    def generate(self, case: PadCase) -> Feeds:
        """Make a request at the real sizes, without rows of zeros where a nonzero value is at hand."""
        return without_zero_rows(self.subject.values.feeds(case.sizes, self.rng))

    def holds(self, case: PadCase, feeds: Feeds, worst: Worst, garbage: Feeds | None = None) -> bool | None:
        """Compare padded with exact; None where the reference cannot run one of them."""
        exact = self.padded.runs.attempt(feeds, case.sizes)
        got = None if exact is None else self.padded.run(feeds, case, garbage)
        if exact is None or got is None:
            return None
        return worst.compare(got, exact, self.options.tolerance, {**case.sizes, **self._grown(case)})

    def try_generated(self) -> None:
        """Compare at every case."""
        for case in self.cases:
            if self._try(case, self.generate(case)):
                self.runnable.append(case)

    def try_full_masks(self) -> None:
        """Compare with masks of ones, all of them and one at a time: generated ones seldom are, real ones mostly."""
        boxes = self.bounds.boxes()
        for k, case in enumerate(self.runnable):
            feeds = self.generate(case)
            names = mask_like(feeds, boxes)
            if names:
                self._try(case, with_ones(feeds, names if k % 2 else [names[k // 2 % len(names)]]))

    def try_boxes(self) -> None:
        """Compare with floats from everywhere in the bounds so far."""
        boxes = self.bounds.boxes()
        for k, case in enumerate(self.runnable):
            feeds = self.generate(case)
            changed = in_box(feeds, boxes, BOX_VARIANTS[k % len(BOX_VARIANTS)], self.rng)
            if any(changed[name] is not value for name, value in feeds.items()):
                self._try(case, changed)

    def try_faint(self) -> None:
        """Compare with ever smaller floats, where padding is largest: an average in it may fall below a threshold."""
        boxes = self.bounds.boxes()
        if not self.runnable:
            return
        case = max(self.runnable, key=lambda c: prod(c.run_sizes.values()) / max(prod(c.sizes.values()), 1))
        for k in range(_FAINT_STEPS):
            feeds = self.generate(case)
            smaller = shrunk(boxes, 10.0 ** (-_FAINT_DECADES * (k + 1) / _FAINT_STEPS))
            changed = in_box(feeds, smaller, ("upper half", "lower half")[k % 2], self.rng)
            if all(changed[name] is value for name, value in feeds.items()):
                return
            self._try(case, changed)

    def try_samples(self) -> None:
        """Compare with real requests, except those whose rows of zeros padding was not exact for."""
        exclusive = {name for name, d in self.bounds.domain().items() if d.rows_nonzero}
        for sample in self.subject.samples[: self.options.max_samples]:
            if any(has_zero_row(value) for name, value in sample.items() if name in exclusive):
                self._skipped_samples += 1
                continue
            sizes = sizes_of(self.subject.signature, sample)
            for case in sample_cases(self.subject, [rule.symbol for rule in self.padded.rules], sizes):
                self._try(case, dict(sample))

    def try_zero_rows(self) -> None:
        """Find the inputs whose rows may be all zero; an attention mask without a single one is the known trap."""
        names = [name for name, d in self.bounds.domain().items() if d.rows_nonzero]
        for name in names:
            allowed = Bounds()
            verdicts = []
            for k, case in enumerate(self.runnable[: self.options.repeats]):
                feeds = self.generate(case)
                if name not in feeds or not is_number(feeds[name]) or feeds[name].ndim == 0:
                    continue
                feeds = with_zero_rows(feeds, name, every=k % 2 == 0)
                verdicts.append(self.holds(case, feeds, Worst()))
                allowed.include({name: feeds[name]})
            if True in verdicts and False not in verdicts:
                self.bounds.include_all(allowed)

    def note(self) -> str:
        """Say what was left out."""
        skipped = f"{self._skipped_samples} samples hold rows of zeros and run exact" if self._skipped_samples else ""
        return "; ".join(filter(None, [self.padded.runs.note(), skipped]))

    def _try(self, case: PadCase, feeds: Feeds) -> bool:
        ran = self.holds(case, feeds, self.worst) is not None
        if ran:
            self.bounds.include(feeds)
        return ran

    def _grown(self, case: PadCase) -> dict[str, int]:
        return {f"{name} padded": size for name, size in case.run_sizes.items() if size != case.sizes[name]}
