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
            _against_plain(report, Path(work), (inputs, outputs), bar)
        for mib in (1, 4, 16):
            _borrow_against_run(report, Path(work), mib)


def _against_plain(report: Report, work: Path, counts: tuple[int, int], bar: float) -> None:
    """Three rows padded to four, against the exact shape on ONNX Runtime, called with named outputs."""
    inputs, outputs = counts
    model, bundle = build_tiny(work, inputs, outputs)
    plain = plain_session(model, threads=1)
    names = [f"y{i}" for i in range(outputs)]
    feeds = {f"x{i}": np.random.default_rng(i).random((3, 16), np.float32) for i in range(inputs)}
    label = f"tiny model, {inputs} in {outputs} out, 3 rows padded to 4"
    how = f"median of {ROUNDS} rounds of {COUNT} calls in turns, 1 thread, exact shape for the peer"
    with load(bundle, threads=1) as session:
        for ours, theirs in zip(session.run(feeds).values(), plain.run(names, feeds), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for name, call, limit in (
            ("run", lambda: session.run(feeds), bar),
            ("borrow", lambda: _borrow(session, feeds), 1.0),
        ):
            pair = alternate(call, lambda: plain.run(names, feeds), count=COUNT, rounds=ROUNDS)
            report.add(
                Figure(f"{name}, {label}", us(pair.ours_s), us(pair.peer_s), pair.ratio, limit, pair.spread, how)
            )


def _borrow_against_run(report: Report, work: Path, mib: int) -> None:
    width = mib * MIB // 4 // 4
    _model, bundle = build_tiny(work, 1, 1, width=width)
    feeds = {"x0": np.ones((4, width), np.float32)}
    with load(bundle, threads=1) as session:
        pair = alternate(
            lambda: _borrow(session, feeds), lambda: session.run(feeds), count=100 // mib + 3, rounds=ROUNDS
        )
    name = f"borrow against run, output of {mib} MiB"
    how = f"median of {ROUNDS} rounds in turns"
    report.add(Figure(name, us(pair.ours_s), us(pair.peer_s) + " (run)", pair.ratio, 1.0, pair.spread, how))


def _borrow(session: Session, feeds: dict[str, np.ndarray]) -> None:
    with session.borrow(feeds):
        pass


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
