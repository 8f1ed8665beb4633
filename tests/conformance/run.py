"""onnx's node tests through a whole build and run, beside plain ONNX Runtime; ``make conformance`` runs this."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import pool
import report

from trtc.engines.host import this_host

_MOST_CHILDREN = 8
_MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 (a private folder is made inside)
"""Thousands of small bundles are written and removed; here, making each durable costs nothing."""


def main() -> int:
    """Run the suite, write the reports, say how it went.

    Returns:
        1 when trtc crashed, hung, failed, or did not pass a test that plain ONNX Runtime passes.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/conformance.json"), help="where to write everything")
    parser.add_argument("--page", type=Path, help="where to write the page for people")
    given = parser.parse_args()
    start_s = time.perf_counter()
    fast = _MEMORY_FOLDER if os.access(_MEMORY_FOLDER, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="trtc-conformance-", dir=fast) as folder:
        rows = pool.judge_all(
            [sys.executable, str(Path(__file__).with_name("worker.py"))],
            min(this_host().threads, _MOST_CHILDREN),
            {**os.environ, "TMPDIR": folder},
        )
    found = report.as_json(rows, time.perf_counter() - start_s)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(found, indent=1) + "\n")
    if given.page:
        given.page.write_text(report.as_page(rows))
    for side in ("trtc", "onnxruntime"):
        counted = ", ".join(f"{count} {verdict}" for verdict, count in found["counts"][side].most_common())
        sys.stdout.write(f"{side:12} {counted}\n")
    bad = [row for row in rows if row.ours[0] in ("failed", "crashed", "hung") or _lost(row)]
    for row in bad:
        sys.stdout.write(f"{row.name}: {row.ours[0]} ({row.ours[1]}); plain ONNX Runtime: {row.plain[0]}\n")
    sys.stdout.write(f"{len(rows)} tests in {found['seconds']:.0f} s, written to {given.json}\n")
    return 1 if bad else 0


def _lost(row: pool.Row) -> bool:
    """Plain ONNX Runtime passes and we do not, or our answer is wrong where its is not."""
    return (row.plain[0] == "passed" != row.ours[0]) or (row.ours[0] == "wrong" != row.plain[0])


if __name__ == "__main__":
    sys.exit(main())
