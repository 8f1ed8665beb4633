"""What is shown about a plan: the same values for the table, for JSON and for the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.profiles.baselines import equal_counts, one_at_the_maximum, powers_of_two
from trtc.profiles.evaluation import Evaluation, evaluate_ladder, served_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from trtc.compiler.plan_model import PlannedModel
    from trtc.compiler.planning import Planning
    from trtc.engines.manifest import CostRecord, Execution
    from trtc.profiles import Ladder
    from trtc.profiles.plan_values import CurvePoint
    from trtc.profiles.traffic import Traffic

SHARES = (0.5, 0.9, 0.99, 1.0)
"""Quantiles of the traffic that are shown."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Another ladder for the same traffic.

    Attributes:
        name: how it was made.
        profiles: how many it has.
        expected_s: mean seconds of a request.
        waste: padded minus useful elements, over padded elements.
    """

    name: str
    profiles: int
    expected_s: float
    waste: float


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan, ready to be shown.

    Attributes:
        title: the model's name.
        traffic: that was planned for.
        ladder: that was planned.
        padded: symbols that may be padded.
        cost: of the target.
        curve: the best ladder of each length.
        point: of the chosen one.
        reason: why that one.
        exact_s: mean seconds at exact sizes.
        refused: share of the requests that no profile takes.
        compared: other ladders.
        execution: how it will run; None where that was not measured.
        notes: what else to know.
        measure_s: seconds that measuring had.
    """

    title: str
    traffic: Traffic
    ladder: Ladder
    padded: frozenset[str]
    cost: CostRecord
    curve: tuple[CurvePoint, ...]
    point: CurvePoint
    reason: str
    exact_s: float
    refused: float
    compared: tuple[Compared, ...]
    execution: Execution | None
    notes: tuple[str, ...]
    measure_s: float

    @classmethod
    def of(cls, title: str, made: PlannedModel) -> PlanView:
        """Collect it."""
        planning = made.planning
        result, request = planning.result, planning.request
        return cls(
            title,
            planning.traffic,
            result.ladder,
            request.padded,
            planning.cost,
            result.curve,
            result.point,
            result.reason,
            result.exact_s,
            result.refused,
            compared_ladders(planning),
            None if planning.measured is None else planning.measured.execution,
            made.notes,
            made.measure_s,
        )

    @property
    def evaluation(self) -> Evaluation:
        """What each profile takes."""
        return evaluate_ladder(self.ladder, self.traffic, self.cost.model, self.padded)

    @property
    def varying(self) -> list[str]:
        """Symbols that have more than one size in the traffic."""
        return [s for i, s in enumerate(self.traffic.symbols) if len(np.unique(self.traffic.sizes[:, i])) > 1]

    @property
    def surface_symbols(self) -> list[str]:
        """The one or two symbols that costs are drawn over."""
        wide = [s for s, axis in zip(self.cost.model.symbols, self.cost.model.grid, strict=True) if len(axis) > 1]
        return (sorted(wide, key=lambda s: s not in self.padded) or list(self.cost.model.symbols))[:2]

    @property
    def bucket_symbols(self) -> list[str]:
        """Symbols whose buckets tell profiles apart."""
        found = [s for s in self.traffic.symbols if len({p.ranges[s].max for p in self.ladder.profiles}) > 1]
        return found or list(self.traffic.symbols[:1])

    @property
    def bucket_label(self) -> str:
        """What ``bucket_text`` writes."""
        return " x ".join(self.bucket_symbols)

    def bucket_text(self, index: int) -> str:
        """The sizes of one bucket, such as ``8 x 128``."""
        ranges = self.ladder.profiles[index].ranges
        return " x ".join(str(ranges[s].max if ranges[s].max is not None else ranges[s]) for s in self.bucket_symbols)

    def cost_at(self, sizes: Mapping[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
        """Seconds at sizes of some symbols, every other at its largest."""
        model = self.cost.model
        count = len(next(iter(sizes.values())))
        columns = [
            sizes[s] if s in sizes else np.full(count, axis[-1])
            for s, axis in zip(model.symbols, model.grid, strict=True)
        ]
        return model.seconds(np.stack(columns, axis=1))

    def fields(self) -> dict[str, Any]:
        """The fields of the JSON object."""
        model = self.cost.model
        return {
            "traffic": traffic_fields(self.traffic),
            "padded": sorted(self.padded),
            "cost": {
                "source": model.source,
                "symbols": model.symbols,
                "grid": model.grid,
                "grid_s": model.grid_s,
                "held_out": model.held_out,
                "threads": self.cost.threads,
                "runs": self.cost.runs,
                "refused": self.cost.refused,
                "spread": self.cost.spread,
            },
            "profiles": [
                {"name": p.name, "ranges": p.ranges, "cost_s": cost_s, "share": use.share, "waste": use.waste}
                for p, cost_s, use in zip(
                    self.ladder.profiles, self.ladder.cost_s, self.evaluation.buckets, strict=True
                )
            ],
            "expected_s": self.point.expected_s,
            "exact_s": self.exact_s,
            "waste": self.point.waste,
            "lower_s": self.point.lower_s,
            "proven": self.point.proven,
            "refused": self.refused,
            "reason": self.reason,
            "curve": self.curve,
            "compared": self.compared,
            "execution": self.execution,
            "notes": self.notes,
        }


def compared_ladders(planning: Planning) -> tuple[Compared, ...]:
    """Ladders that people make by hand, for the requests that the plan serves, with the same cost and alignment."""
    cost, request = planning.cost.model, planning.request
    traffic = served_part(planning.result.ladder, planning.traffic, request.padded)
    align, most = request.align, len(planning.result.ladder.profiles)
    ladders = {
        "one profile at the maximum": one_at_the_maximum(traffic, cost, align),
        "powers of two": powers_of_two(traffic, cost, align, most),
        "equal counts (quantiles)": equal_counts(traffic, cost, align, most),
    }
    found = []
    for name, ladder in ladders.items():
        seen = evaluate_ladder(ladder, traffic, cost, request.padded)
        found.append(Compared(name, len(ladder.profiles), seen.expected_s, seen.waste))
    return tuple(found)


def traffic_fields(traffic: Traffic) -> dict[str, Any]:
    """The summary of traffic for JSON."""
    return {
        "symbols": traffic.symbols,
        "requests": traffic.requests,
        "distinct": len(traffic.sizes),
        "digest": traffic.digest,
        "quantiles": {
            s: dict(zip(map(str, SHARES), traffic.quantiles(s, SHARES), strict=True)) for s in traffic.symbols
        },
    }
