"""What a call costs around the engine: run and borrow against plain ONNX Runtime, on a model that takes no time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring import Figure, Report, alternate, us
from models import build_tiny, plain_session
from trtc.runtime import load

if TYPE_CHECKING:
    from trtc.runtime import Session

COUNT, ROUNDS = 4000, 31
MIB = 2**20


def measure(report: Report) -> None:
    """Add the figures."""
    with tempfile.TemporaryDirectory() as work:
        for inputs, outputs, bar in ((1, 1, 0.8), (3, 2, 0.9)):
            model, bundle = build_tiny(Path(work), inputs, outputs)
            plain = plain_session(model, threads=1)
            names = [f"y{i}" for i in range(outputs)]
            feeds = {f"x{i}": np.random.default_rng(i).random((3, 16), np.float32) for i in range(inputs)}
            with load(bundle, threads=1) as session:
                for ours, theirs in zip(session.run(feeds).values(), plain.run(names, feeds), strict=True):
                    np.testing.assert_array_equal(ours, theirs)
                label = f"tiny model, {inputs} in {outputs} out, 3 rows padded to 4"
                how = f"median of {ROUNDS} rounds of {COUNT} calls in turns, 1 thread, exact shape for the peer"
                pair = alternate(lambda: session.run(feeds), lambda: plain.run(names, feeds), count=COUNT, rounds=ROUNDS)
                report.add(Figure(f"run, {label}", us(pair.ours_s), us(pair.peer_s), pair.ratio, bar, pair.spread, how))
                pair = alternate(
                    lambda: _borrow(session, feeds), lambda: plain.run(names, feeds), count=COUNT, rounds=ROUNDS
                )
                report.add(Figure(f"borrow, {label}", us(pair.ours_s), us(pair.peer_s), pair.ratio, 1.0, pair.spread, how))
        for mib in (1, 4, 16):
            _model, bundle = build_tiny(Path(work), 1, 1, width=mib * MIB // 4 // 4)
            feeds = {"x0": np.ones((4, mib * MIB // 4 // 4), np.float32)}
            with load(bundle, threads=1) as session:
                pair = alternate(
                    lambda: _borrow(session, feeds), lambda: session.run(feeds), count=100 // mib + 3, rounds=ROUNDS
                )
            report.add(
                Figure(
                    f"borrow against run, output of {mib} MiB", us(pair.ours_s), us(pair.peer_s) + " (run)",
                    pair.ratio, 1.0, pair.spread, f"median of {ROUNDS} rounds in turns",
                )
            )  # fmt: skip


def _borrow(session: Session, feeds: dict[str, np.ndarray]) -> None:
    with session.borrow(feeds):
        pass


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
