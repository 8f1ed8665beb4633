"""Four threads, mixed sizes: every result against the exact-shape reference."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import numpy as np
from measuring import Figure, Report
from models import build_minilm, minilm_path, minilm_request, plain_session

from trtc.runtime import load

CALLS, THREADS, DISTINCT = 2000, 4, 60


def measure(report: Report) -> None:
    """Add the figure."""
    rng = np.random.default_rng(5)
    requests = [minilm_request(rng, int(rng.integers(1, 4)), int(rng.integers(1, 65))) for _ in range(DISTINCT)]
    plain = plain_session(minilm_path())
    expected = [plain.run(["461"], feeds)[0] for feeds in requests]
    for mode in ("auto", "bucket"):
        wrong: list[int] = []
        with tempfile.TemporaryDirectory() as work, load(build_minilm(Path(work), mode)) as session:

            def work_on(start: int) -> None:
                for call in range(start, CALLS, THREADS):
                    i = call % DISTINCT
                    got = session.run(requests[i])["461"]
                    allowed = 1e-5 + 1e-4 * np.abs(expected[i]).max()
                    if got.shape != expected[i].shape or np.abs(got - expected[i]).max() > allowed:
                        wrong.append(call)  # noqa: B023

            threads = [threading.Thread(target=work_on, args=(i,)) for i in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        report.add(
            Figure(f"wrong results of {CALLS} calls from {THREADS} threads, mode {mode}", str(len(wrong)), "-",
                   float(len(wrong)), 0.0, note=f"MiniLM-L3, {DISTINCT} requests, batch 1..3, 1..64 tokens")
        )  # fmt: skip


if __name__ == "__main__":
    only = Report()
    measure(only)
    only.show()
