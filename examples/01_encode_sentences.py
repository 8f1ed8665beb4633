"""Encode real sentences of many lengths, and find the nearest neighbour of each.

    python examples/01_encode_sentences.py [--out FOLDER] [--quick]

Builds a bundle of MiniLM (a sentence encoder) for batches of up to 8 sentences, with buckets for their lengths;
encodes sentences of Python's documentation; compares every embedding with plain ONNX Runtime.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import inputs
import numpy as np
import onnxruntime

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.runtime import TrtcError, load
from trtc.tools.output import Progress, print_line, print_table
from trtc.tools.planned import runs_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.runtime import Session

EMBEDDING = "461"
"""The output that holds one pooled vector a sentence: float32 [batch_size, 384]."""
BATCH_ROWS = 8
TOPICS = ("while", "import", "lambda", "assert", "raise", "global", "del", "with", "string-methods", "floating")


def build_bundle(folder: Path, *, quick: bool) -> Path:
    """Build the bundle unless it is there already."""
    bundle = folder / ("minilm-quick.trtc" if quick else "minilm.trtc")
    if bundle.exists():
        print_line(f"using the bundle {bundle}; remove it to build again")
        return bundle
    options = BuildOptions(
        shapes=ShapeOptions(
            dim=(f"batch_size=1..{BATCH_ROWS}",),
            buckets=("sequence_length=32,128",) if quick else ("sequence_length=16,32,64,128",),
        ),
        pads=("sequence_length", "batch_size"),
        fills=("input_ids=0", "attention_mask=0"),
        measure_s=0.0 if quick else 3.0,
        verify_s=2.0 if quick else 15.0,
    )
    progress = Progress()
    try:
        report = build(inputs.locate(*inputs.MINILM), bundle, options, progress)
    finally:
        progress.done()
    print_line(f"built {report.path}: padding was proven not to change answers, and the engine equals the model")
    return bundle


def batches_of(texts: Sequence[str]) -> list[tuple[list[int], dict[str, np.ndarray]]]:
    """Tokenize, sort by length, and form batches: which texts, and int64 [rows, longest] ids and mask."""
    tokenizer = inputs.tokenizer()
    ids = [tokenizer.encode(text).ids for text in texts]
    order = sorted(range(len(texts)), key=lambda i: len(ids[i]))
    batches = []
    for start in range(0, len(order), BATCH_ROWS):
        members = order[start : start + BATCH_ROWS]
        longest = max(len(ids[i]) for i in members)
        feeds = {name: np.zeros((len(members), longest), np.int64) for name in ("input_ids", "attention_mask")}
        for row, i in enumerate(members):
            feeds["input_ids"][row, : len(ids[i])] = ids[i]
            feeds["attention_mask"][row, : len(ids[i])] = 1
        batches.append((members, feeds))
    return batches


def show_profiles(session: Session, batches: Sequence[tuple[list[int], dict[str, np.ndarray]]]) -> None:
    """Print where each batch runs."""
    rows = []
    for number, (members, feeds) in enumerate(batches, 1):
        tokens = feeds["input_ids"].shape[1]
        found = session.explain({"batch_size": len(members), "sequence_length": tokens})
        run = found.run_sizes or {}
        rows.append((number, len(members), tokens, found.profile, f"{run['batch_size']} x {run['sequence_length']}"))
    print_table("batches", ("batch", "sentences", "longest, tokens", "profile", "runs at"), rows)


def show_neighbours(texts: Sequence[str], vectors: np.ndarray) -> None:
    """Print the nearest other sentence of each."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -1)
    nearest = cosine.argmax(axis=1)
    rows = [
        (shortened(text), shortened(texts[j]), f"{cosine[i, j]:.2f}")
        for i, (text, j) in enumerate(zip(texts, nearest, strict=True))
    ]
    print_table("nearest sentences", ("sentence", "nearest neighbour", "cosine"), rows)


def shortened(text: str, limit: int = 44) -> str:
    """Cut a text for a table."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def median_seconds(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Time several ways of doing the same, in turn, and return the median of each."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start_s = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - start_s)
    return {name: statistics.median(values) for name, values in taken.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; 0 when every embedding equals plain ONNX Runtime's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=inputs.BUILD_FOLDER, help="folder for the bundle (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer buckets, sentences and rounds")
    given = parser.parse_args(argv)

    texts = inputs.sentences_about(TOPICS[:6] if given.quick else TOPICS, 4)
    batches = batches_of(texts)
    plain = onnxruntime.InferenceSession(str(inputs.locate(*inputs.MINILM)), providers=["CPUExecutionProvider"])
    with load(build_bundle(given.out, quick=given.quick)) as session:
        vectors = np.empty((len(texts), 384), np.float32)
        expected = np.empty_like(vectors)
        for members, feeds in batches:
            vectors[members] = session.run(feeds, outputs=[EMBEDDING])[EMBEDDING]
            expected[members] = plain.run([EMBEDDING], feeds)[0]
        show_neighbours(texts, vectors)
        show_profiles(session, batches)

        atol, rtol = session.manifest.tolerance
        difference, allowed = float(np.abs(vectors - expected).max()), atol + rtol * float(np.abs(expected).max())
        verdict = "equal within tolerance" if difference <= allowed else "NOT equal"
        print_line(f"against plain ONNX Runtime: {verdict}, largest difference {difference:.1e}, allowed {allowed:.1e}")

        medians = median_seconds(
            {
                "trtc": lambda: [session.run(feeds, outputs=[EMBEDDING]) for _, feeds in batches],
                "ONNX Runtime": lambda: [plain.run([EMBEDDING], feeds) for _, feeds in batches],
            },
            rounds=3 if given.quick else 9,
        )
        each_ms = {name: seconds / len(texts) * 1e3 for name, seconds in medians.items()}
        execution = session.explain().execution
        print_line(
            f"time per sentence: trtc {each_ms['trtc']:.2f} ms, plain ONNX Runtime {each_ms['ONNX Runtime']:.2f} ms "
            "(one caller, the same batches, median)"
        )
        print_line(runs_text(execution))
    return 0 if difference <= allowed else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except TrtcError as error:
        sys.exit(f"trtc: error: {error}")
