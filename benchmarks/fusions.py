"""One call on a bundle beside plain ONNX Runtime on the same model: what rewriting graphs gains.

Both sides have as many threads as there are processors, and let them wait actively, as a program that knows nothing
of trtc does. Each side rests before its turn, so that threads of the other one do not take its processors while they
wait. Outputs are compared as well: a faster answer that differs is none.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measuring import Figure, Report, alternate, us
from models import minilm_path, minilm_request, plain_session

from trtc.compiler import BuildOptions, build
from trtc.engines.host import this_host
from trtc.runtime import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtc.engines.build import Fuse

ROUNDS = 25
REST_S = 0.05
TURN_S = 0.04
_LEVELS: tuple[Fuse, ...] = ("close", "all")
_QUICK = BuildOptions(measure_s=0.0, verify_s=1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """A model, and one request of a size that it really gets."""

    name: str
    model: Path
    feeds: dict[str, np.ndarray]


def measure(report: Report) -> None:
    """Measure what is installed."""
    threads = this_host().threads
    with tempfile.TemporaryDirectory(prefix="trtc-bench-") as folder:
        for case in _cases():
            plain = partial(plain_session(case.model, threads).run, None, case.feeds)
            for fuse in _LEVELS:
                built = build(case.model, Path(folder) / f"{case.name}-{fuse}.trtc", replace(_QUICK, fuse=fuse))
                with load(built.path, device="cpu", threads=threads, spinning=True) as session:
                    _compare(report, f"{case.name}, --fuse {fuse}", partial(session.run, case.feeds), plain)


def _compare(report: Report, name: str, ours: partial[dict[str, np.ndarray]], peer: partial[list[np.ndarray]]) -> None:
    pairs = zip(ours().values(), peer(), strict=True)
    error = max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs)
    for _ in range(5):
        ours()
        peer()
    once = alternate(ours, peer, count=1, rounds=5, rest_s=REST_S).peer_s
    count = max(1, round(TURN_S / once))
    pair = alternate(ours, peer, count=count, rounds=ROUNDS, rest_s=REST_S)
    note = f"{ROUNDS} turns of {count}, {REST_S * 1e3:.0f} ms rest before each; largest difference {error:.1e}"
    report.add(Figure(f"a call of {name}", us(pair.ours_s), us(pair.peer_s), pair.ratio, 1.0, pair.spread, note))


def _cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)

    def image(height: int, width: int) -> dict[str, np.ndarray]:
        return {"x": rng.normal(size=(1, 3, height, width)).astype(np.float32)}

    speech = {
        "input": rng.normal(size=(1, 576)).astype(np.float32),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(16000),
    }
    ocr = "rapidocr_onnxruntime/models/ch_"
    for name, package, path, feeds in [
        ("magika", "magika", "magika/models/standard_v3_3/model.onnx",
         {"bytes": rng.integers(0, 257, (1, 2048), np.int32)}),
        ("ppocr-detection", "rapidocr-onnxruntime", f"{ocr}PP-OCRv4_det_infer.onnx", image(480, 640)),
        ("ppocr-recognition", "rapidocr-onnxruntime", f"{ocr}PP-OCRv4_rec_infer.onnx", image(48, 320)),
        ("ppocr-classifier", "rapidocr-onnxruntime", f"{ocr}ppocr_mobile_v2.0_cls_infer.onnx", image(48, 192)),
        ("silero-vad", "silero-vad", "silero_vad/data/silero_vad.onnx", speech),
    ]:  # fmt: skip
        try:
            yield Case(name, Path(str(distribution(package).locate_file(path))), feeds)
        except PackageNotFoundError:
            print(f"{name}: not measured, {package} is not installed")
    yield Case("minilm", minilm_path(), minilm_request(rng, 1, 32))


if __name__ == "__main__":
    found = Report()
    measure(found)
    found.show()
