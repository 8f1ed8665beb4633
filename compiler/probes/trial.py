"""One run of the reference at padded sizes, through the same plan that the runtime will follow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.compiler.probes.subject import is_floating, reduced
from trtc.compiler.tolerance import Comparison, compare_outputs
from trtc.engines.route import pad_array, plan_route

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.compiler.probes.cases import PadCase
    from trtc.compiler.probes.subject import Feeds, Runs
    from trtc.compiler.tolerance import Tolerance
    from trtc.engines.manifest import Finding
    from trtc.engines.route import RoutePlan
    from trtc.engines.signature import Signature
    from trtc.profiles import PadRule


class PaddedRuns:
    """Runs one model padded by fixed rules.

    Attributes:
        runs: the reference.
        signature: of the model.
        rules: how symbols are padded.
    """

    def __init__(self, runs: Runs, signature: Signature, rules: Sequence[PadRule]) -> None:
        self.runs = runs
        self.signature = signature
        self.rules = tuple(rules)

    def route(self, feeds: Feeds, case: PadCase) -> RoutePlan:
        """Plan a request."""
        return plan_route(reduced(self.signature, feeds), self.rules, case.sizes, case.run_sizes)

    def run(self, feeds: Feeds, case: PadCase, garbage: Mapping[str, np.ndarray] | None = None) -> Feeds | None:
        """Pad, run, trim.

        Args:
            feeds: at the real sizes.
            case: real sizes and the sizes to run at.
            garbage: arrays at the sizes to run at; the padding of these inputs is taken from them.

        Returns:
            Outputs at the real sizes; None where the reference cannot run at the padded ones.
        """
        route = self.route(feeds, case)
        padded: Feeds = {}
        for name, value in feeds.items():
            place = route.layout.inputs.get(name)
            padded[name] = value if place is None else pad_array(np.asarray(value), route.inputs[name], place.shape)
        for name, array in (garbage or {}).items():
            for region, _ in route.inputs[name].fills:
                padded[name][region] = array[region]
        outputs = self.runs.attempt(padded, case.run_sizes)
        return None if outputs is None else trim(outputs, route)


def trim(outputs: Mapping[str, Any], route: RoutePlan) -> Feeds:
    """Cut each placed output down to its real part; one that came in another shape than planned stays as it is."""
    trimmed = dict(outputs)
    for name, region in route.trims.items():
        if name in outputs and np.shape(outputs[name]) == route.layout.outputs[name].shape:
            trimmed[name] = outputs[name][region]
    return trimmed


class Worst:
    """The worst comparison of each output so far, with the sizes it was seen at.

    Attributes:
        seen: by output.
        comparisons: how many runs were compared.
        overflowed: an expected output held NaN or an infinity.
    """

    def __init__(self) -> None:
        self.seen: dict[str, tuple[Comparison, dict[str, int]]] = {}
        self.comparisons = 0
        self.overflowed = False

    def compare(self, got: Feeds, exact: Feeds, tolerance: Tolerance, sizes: dict[str, int]) -> bool:
        """Compare all outputs, remember the worst of each, tell whether all passed."""
        self.comparisons += 1
        self.overflowed = self.overflowed or any(is_floating(v) and not np.isfinite(v).all() for v in exact.values())
        passed = True
        for name, comparison in compare_outputs(got, exact, tolerance).items():
            passed = passed and comparison.passed
            if name not in self.seen or rank(comparison) > rank(self.seen[name][0]):
                self.seen[name] = comparison, dict(sizes)
        return passed

    def include(self, other: Worst) -> None:
        """Take over what other trials of the same claim saw."""
        self.comparisons += other.comparisons
        self.overflowed = self.overflowed or other.overflowed
        for name, (comparison, sizes) in other.seen.items():
            if name not in self.seen or rank(comparison) > rank(self.seen[name][0]):
                self.seen[name] = comparison, sizes

    @property
    def passed(self) -> bool:
        """Whether anything was compared, and everything passed."""
        return self.comparisons > 0 and all(comparison.passed for comparison, _ in self.seen.values())

    def findings(self) -> tuple[Finding, ...]:
        """Record the worst of each output; of the failed ones only, when any failed."""
        every = self.passed
        return tuple(c.finding(name, sizes) for name, (c, sizes) in self.seen.items() if every or not c.passed)

    def failures(self) -> str:
        """Name the outputs that failed, and by how much."""
        return "; ".join(
            f"output {name!r}: {comparison.reason}"
            for name, (comparison, _) in self.seen.items()
            if not comparison.passed
        )


def rank(comparison: Comparison) -> tuple[bool, bool, float]:
    """Order by how bad, where of two failures the one with a number tells more than the one without."""
    return not comparison.passed, math.isfinite(comparison.max_abs), comparison.severity
