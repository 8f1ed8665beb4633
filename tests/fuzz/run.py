"""Fuzz trtc: ``python tests/fuzz/run.py --cases 20000 manifest texts importer bundles``.

Cases follow from ``--seed`` and their number alone: ``--first 17 --cases 1`` repeats case 17. Findings are written to
``--findings``; the exit code is 1 when there are any. ``--json`` prints one JSON object a target.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bundles import Bundles
from importer import Importer
from manifests import Manifests
from sandbox import FINDING, run_cases
from seeds import bundle
from texts import Texts

if TYPE_CHECKING:
    from sandbox import Target

TARGETS = {"manifest": 1_200_000, "texts": 1_000_000, "importer": 40_000, "bundles": 40_000}
"""Cases of a long run."""


def target_named(name: str, seed: int, folder: Path) -> Target:
    folder = folder / name
    folder.mkdir()
    if name == "texts":
        return Texts(seed, folder)
    if name == "importer":
        return Importer(seed, folder)
    made = [bundle(folder, kind) for kind in ("padded", "exact")]
    return Manifests(seed, made) if name == "manifest" else Bundles(seed, folder, made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[])
    parser.add_argument("--cases", type=int, help="of each target; as many as a long run takes when left out")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--findings", type=Path, default=Path("out/findings"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    findings = given.findings.absolute()
    found = 0
    with tempfile.TemporaryDirectory(prefix="trtc-fuzz-") as work:
        folder = Path(work).resolve()
        (folder / "empty").mkdir()
        os.chdir(folder / "empty")
        for name in given.targets or TARGETS:
            target = target_named(name, given.seed, folder)
            start_s = time.monotonic()
            tally = run_cases(target, range(given.first, given.first + (given.cases or TARGETS[name])), findings)
            seconds = time.monotonic() - start_s
            if left := sorted(path.name for path in Path.cwd().iterdir()):
                tally.outcomes[FINDING] += 1
                print(f"the current folder was written to: {left}")
            found += tally.outcomes[FINDING]
            report(name, tally.cases, seconds, dict(sorted(tally.outcomes.items())), as_json=given.json)
            for path in tally.findings[:20]:
                print(f"  {path}", file=sys.stderr)
        os.chdir("/")
    return 1 if found else 0


def report(name: str, cases: int, seconds: float, outcomes: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"target": name, "cases": cases, "seconds": round(seconds, 1), "outcomes": outcomes}))
        return
    listed = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    print(f"{name}: {cases} cases in {seconds:.1f} s ({listed})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
