"""A peer beside us: the same requests in turns, the answers compared first, so that the same work is timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.tools.bench.peers import called
from trtc.tools.bench.ratio import ratio_of
from trtc.tools.bench.results import PeerResult
from trtc.tools.bench.rounds import REST_S, alternate
from trtc.tools.bench.summary import summarise
from trtc.tools.bench.waiting import both_waiting, spinning_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.runtime import Session
    from trtc.tools.bench.clock import Clock
    from trtc.tools.bench.measure import Plan
    from trtc.tools.bench.peers import Peer
    from trtc.tools.bench.workload import Workload

MAX_TURN = 64
"""Requests of one round; a longer mix is represented by its first ones, which are shuffled."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How both are timed: the plan, the clock, and the seed of resampling."""

    plan: Plan
    clock: Clock
    seed: int = 0


def versus(session: Session, peer: Peer, workload: Workload, turns: Turns) -> PeerResult:
    """Compare answers, then time both in turns.

    Raises:
        RequestError: when the peer refuses the inputs.
    """
    theirs = [peer.request(feeds) for feeds in workload.feeds]
    differences: dict[str, float] = {}
    agrees = True
    for feeds, request in zip(workload.feeds, theirs, strict=True):
        found = compared(session.run(feeds), peer.outputs(called(peer, request)), session.manifest.tolerance)
        agrees = agrees and found[1]
        for name, value in found[0].items():
            differences[name] = max(differences.get(name, 0.0), value)
    turn, spinning = workload.order[:MAX_TURN], spinning_of(session)
    rounds = alternate(
        (session.run, [workload.feeds[i] for i in turn]),
        (peer.run, [theirs[i] for i in turn]),
        turns.plan.budget,
        turns.clock,
        0.0 if spinning is peer.spinning is False else REST_S,
    )
    return PeerResult(
        name=peer.name,
        version=peer.version,
        threads=peer.threads,
        idle_threads=both_waiting(spinning, peer.spinning),
        ours=summarise(rounds.ours_s.ravel(), turns.plan.percentiles),
        peer=summarise(rounds.peer_s.ravel(), turns.plan.percentiles),
        ratio=ratio_of(rounds, turns.seed),
        differences=differences,
        agrees=agrees,
    )


def compared(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], tolerance: tuple[float, float]
) -> tuple[dict[str, float], bool]:
    """Return the largest absolute difference of each output, and whether all outputs agree within the tolerance.

    An output that only one side has, another shape, or NaN in other places is no agreement; its difference is infinite.
    """
    atol, rtol = tolerance
    differences, agrees = {}, set(ours) == set(theirs)
    for name in ours:
        a, b = ours[name], theirs.get(name)
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.shape != b.shape:
            differences[name], agrees = float("inf"), False
            continue
        if a.dtype == object or a.dtype.kind in "US":
            same = bool(np.array_equal(a.astype(str), b.astype(str)))
            differences[name], agrees = 0.0 if same else float("inf"), agrees and same
            continue
        x, y = (value.astype(np.float64) for value in (a, b))
        with np.errstate(invalid="ignore"):  # infinity minus infinity
            apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        worst = float(apart.max()) if apart.size else 0.0
        finite = np.abs(y[np.isfinite(y)])
        allowed = atol + rtol * (float(finite.max()) if finite.size else 0.0)
        differences[name] = float("inf") if np.isnan(worst) else worst
        agrees = agrees and worst <= allowed
    return differences, bool(agrees)
