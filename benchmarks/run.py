"""All benchmarks, one table; ``make bench`` runs this. ``--only NAME`` runs one."""

from __future__ import annotations

import argparse
from pathlib import Path

import bench_overhead
import drop_in
import fusions
import loading
import memory
import overhead
import planning
import rtx_builds
import sizes
import starting
import threads
from measuring import Report

ALL = {
    "overhead": overhead,
    "bench": bench_overhead,
    "sizes": sizes,
    "loading": loading,
    "memory": memory,
    "threads": threads,
    "planning": planning,
    "drop_in": drop_in,
    "starting": starting,
    "fusions": fusions,
    "rtx_builds": rtx_builds,
}


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=ALL, action="append", help="run this one; repeat for several")
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"), help="where to write the figures")
    given = parser.parse_args()
    report = Report()
    for name in given.only or ALL:
        ALL[name].measure(report)
    report.show()
    report.write(given.json)
    print(f"figures written to {given.json}")


if __name__ == "__main__":
    main()
