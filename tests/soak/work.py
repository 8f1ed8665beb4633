"""The calls of a soak: bundles that share an arena, requests of many sizes, and the answers that are right."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime

sys.path.append(str(Path(__file__).resolve().parents[1] / "fuzz"))
from seeds import masked_sum, projection

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.runtime import Arena, Session, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIANTS = 3
AT_ONCE_CALLS = 50


@dataclass(frozen=True)
class Request:
    """A request and its answer: exact for the tiny models (whole numbers), within a tolerance for the others."""

    feeds: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    tolerance: float

    def wrong(self, found: dict[str, Any]) -> bool:
        """Whether an answer is not the right one."""
        for name, right in self.expected.items():
            got = found[name]
            if got.shape != right.shape:
                return True
            if self.tolerance == 0:
                if not (got == right).all():
                    return True
            elif right.size and not np.abs(got - right).max() <= self.tolerance:
                return True
        return len(found) != len(self.expected)


class Served:
    """A bundle that is loaded, and may be closed and loaded again while others call it."""

    def __init__(self, path: Path, arena: Arena, slots: int, requests: list[Request]) -> None:
        self._path, self._arena, self._slots = path, arena, slots
        self.requests = requests
        self._lock = Lock()
        self.loads = 0
        self.session = self._load()

    def reload(self) -> None:
        """Load again; calls in flight on the old session end first, later ones on it are refused."""
        with self._lock:
            old = self.session
            old.close()
            self.session = self._load()

    def current(self) -> Session:
        """Return the session in force, waiting for a reload that is going on."""
        with self._lock:
            return self.session

    def warm(self) -> None:
        """Run every request in every slot, and the largest in all slots at once: what is kept once is kept then."""
        for request in self.requests:
            with ExitStack() as held:
                for _ in range(self._slots):
                    held.enter_context(self.session.borrow(request.feeds))

        def together() -> None:
            for _ in range(AT_ONCE_CALLS):
                self.session.run(self.requests[-1].feeds)

        threads = [Thread(target=together) for _ in range(self._slots)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _load(self) -> Session:
        self.loads += 1
        return load(self._path, slots=self._slots, threads=1, arena=self._arena)

    def close(self) -> None:
        self.session.close()


def serve(folder: Path, arena: Arena, slots: int, encoder: Path | None) -> list[Served]:
    """Build and load the bundles: padded to buckets, exact, and a real encoder where one is given."""
    padded, exact = folder / "padded.onnx", folder / "exact.onnx"
    onnx.save(masked_sum(), padded)
    onnx.save(projection(), exact)
    quick: dict[str, Any] = {"measure_s": 0.0, "verify_s": 1.0, "use_cache": False, "threads": 1}
    pads = {"pads": ("seq", "batch"), "fills": ("x=0", "mask=0"), "mode": "bucket"}
    shapes = ShapeOptions(dim=("batch=1..8",), buckets=("seq=8,16,32",))
    build(padded, folder / "padded.trtc", BuildOptions(**quick, **pads, shapes=shapes))
    build(exact, folder / "exact.trtc", BuildOptions(**quick, shapes=ShapeOptions(dim=("B=1..64",)), mode="exact"))
    served = [
        Served(folder / "padded.trtc", arena, slots, list(requests(padded, padded_feeds()))),
        Served(folder / "exact.trtc", arena, slots, list(requests(exact, exact_feeds()))),
    ]
    if encoder is not None:
        pads = {"pads": ("sequence_length",), "fills": ("input_ids=0", "attention_mask=0"), "mode": "bucket"}
        shapes = ShapeOptions(dim=("batch_size=1..2",), buckets=("sequence_length=8,16",))
        build(encoder, folder / "encoder.trtc", BuildOptions(**quick, **pads, shapes=shapes))
        asked = list(requests(encoder, encoder_feeds(), tolerance=1e-4))
        served.append(Served(folder / "encoder.trtc", arena, slots, asked))
    return served


def requests(model: Path, feeds: Iterator[dict[str, np.ndarray]], tolerance: float = 0) -> Iterator[Request]:
    """Run plain ONNX Runtime at exact sizes on each input."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    for given in feeds:
        yield Request(given, dict(zip(names, session.run(names, given), strict=True)), tolerance)


def padded_feeds() -> Iterator[dict[str, np.ndarray]]:
    for draw, batch, seq in sizes(8, 32):
        mask = draw(0, 2, (batch, seq)).astype(np.int64)
        yield {"x": draw(-50, 50, (batch, seq)).astype(np.float32), "mask": mask}


def exact_feeds() -> Iterator[dict[str, np.ndarray]]:
    for draw, batch, _ in sizes(64, 1):
        yield {"x": draw(-50, 50, (batch, 4)).astype(np.float32)}


def encoder_feeds() -> Iterator[dict[str, np.ndarray]]:
    for draw, batch, seq in sizes(2, 16):
        ids = draw(1, 2000, (batch, seq)).astype(np.int64)
        yield {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def sizes(rows: int, length: int) -> Iterator[tuple[Callable[..., np.ndarray], int, int]]:
    rng = np.random.default_rng(0)
    for batch in range(1, rows + 1):
        for seq in range(1, length + 1):
            for _ in range(VARIANTS):
                yield rng.integers, batch, seq
