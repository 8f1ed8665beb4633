"""Measure a bundle beside plain ONNX Runtime, fairly, and what users of a service would wait.

    python examples/04_benchmark_against_onnxruntime.py [--out FOLDER] [--quick]

Real sentences, one a request, in their own lengths. Both sides get the same arrays and as many threads, take turns in
one process, and must agree on every answer before a clock is started. Then calls come at a rate, as in a service.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
import numpy as np
import onnxruntime

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.runtime import TrtcError, load
from trtc.tools.bench import (
    Arrivals,
    Budget,
    MonotonicClock,
    alternate,
    closed_loop,
    open_loop,
    ratio_of,
    summarise,
)
from trtc.tools.durations import seconds_text
from trtc.tools.output import Progress, print_line, print_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.tools.bench import Summary

    Feeds = dict[str, np.ndarray]

TOPICS = ("while", "import", "lambda", "assert", "raise", "global", "del", "with")
SHARE = 0.5
"""Of what the bundle can do at most: the rate of the open loop."""


def build_bundle(folder: Path, *, quick: bool) -> Path:
    """Build the bundle unless it is there already."""
    bundle = folder / ("minilm-quick.trtc" if quick else "minilm.trtc")
    if not bundle.exists():
        options = BuildOptions(
            shapes=ShapeOptions(
                dim=("batch_size=1..8",),
                buckets=("sequence_length=32,128",) if quick else ("sequence_length=16,32,64,128",),
            ),
            pads=("sequence_length", "batch_size"),
            fills=("input_ids=0", "attention_mask=0"),
            measure_s=0.0 if quick else 3.0,
            verify_s=2.0 if quick else 15.0,
        )
        progress = Progress()
        try:
            build(inputs.locate(*inputs.MINILM), bundle, options, progress)
        finally:
            progress.done()
    return bundle


def requests_of(texts: Sequence[str]) -> list[Feeds]:
    """One request a sentence: int64 [1, tokens] ids and mask."""
    tokenizer = inputs.tokenizer()
    ids = [np.array([tokenizer.encode(text).ids]) for text in texts]
    return [{"input_ids": row, "attention_mask": np.ones_like(row)} for row in ids]


def agree(ours: Callable[[Feeds], dict[str, np.ndarray]], plain: Callable[[Feeds], list[np.ndarray]],
          requests: Sequence[Feeds], tolerance: tuple[float, float]) -> bool:  # fmt: skip
    """Tell whether every answer is the same within the bundle's tolerance."""
    atol, rtol = tolerance
    for feeds in requests:
        for a, b in zip(ours(feeds).values(), plain(feeds), strict=True):
            if np.abs(a - b).max() > atol + rtol * np.abs(b).max():
                return False
    return True


def row_of(name: str, found: Summary) -> tuple[object, ...]:
    """One line of a table."""
    shares = (seconds_text(value) for value in found.percentiles_s.values())
    return name, found.count, seconds_text(found.median_s), *shares


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; 0 when both sides do the same work."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=inputs.BUILD_FOLDER, help="folder for the bundle (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer buckets, sentences and calls")
    given = parser.parse_args(argv)
    requests = requests_of(inputs.sentences_about(TOPICS, 2 if given.quick else 8))
    budget = Budget(iterations=20, duration_s=0.5 if given.quick else 5.0)
    clock = MonotonicClock()

    with load(build_bundle(given.out, quick=given.quick)) as session:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = session.explain().execution.threads  # as many as we have
        plain = onnxruntime.InferenceSession(
            str(inputs.locate(*inputs.MINILM)), options, providers=["CPUExecutionProvider"]
        )
        peer = partial(plain.run, [spec.public_name for spec in session.signature.outputs])
        same = agree(session.run, peer, requests, session.manifest.tolerance)
        print_line(f"the answers are {'the same within tolerance' if same else 'NOT the same'}")

        rounds = alternate((session.run, requests), (peer, requests), budget, clock)
        columns = ("side", "calls", "median", "p90", "p95", "p99")
        print_table(
            "in turns, one caller",
            columns,
            [
                row_of("trtc", summarise(rounds.ours_s.ravel())),
                row_of("ONNX Runtime", summarise(rounds.peer_s.ravel())),
            ],
        )
        ratio = ratio_of(rounds)
        verdict = "within noise" if ratio.verdict == "noise" else ratio.verdict
        print_line(f"ratio {ratio.ratio:.3f}, between {ratio.low:.3f} and {ratio.high:.3f} with 95 %: {verdict}")

        closed = closed_loop(session.run, requests, budget, clock)
        rate = SHARE * closed.per_second
        starts_s = Arrivals(rate, "poisson").starts_s(budget.iterations, budget.duration_s)
        opened = open_loop(session.run, requests, starts_s, clock)
        print_table(
            f"the same calls at {rate:.0f} a second, as independent users send them",
            columns,
            [row_of("closed loop: the call", summarise(closed.latency_s)),
             row_of("open loop: the wait", summarise(opened.latency_s))],
        )  # fmt: skip
    return 0 if same else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except TrtcError as error:
        sys.exit(f"trtc: error: {error}")
