"""Take a program that knows nothing of trtc from a record of its traffic to a bundle, without a change to it.

    python examples/05_unmodified_program.py [--out FOLDER] [--quick]

The program is Magika, which tells what kind of file something is; it is installed from the package index and opens its
model with ONNX Runtime. Three commands: record what it asks for, build for that, run it on the bundle.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import inputs

from trtc.tools.output import print_line, print_table

PROGRAM = """
import sys
from pathlib import Path
from magika import Magika

magika = Magika()
for path in map(Path, sys.argv[1:]):
    print(path.name, magika.identify_path(path).output.label)
"""


def main() -> None:
    """Record, build, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=inputs.BUILD_FOLDER, help="folder for record and bundle")
    parser.add_argument("--quick", action="store_true", help="measure briefly")
    given = parser.parse_args()
    model = inputs.locate("magika", "magika/models/standard_v3_3/model.onnx")
    given.out.mkdir(parents=True, exist_ok=True)
    record, bundle, summary = (given.out / name for name in ("magika.jsonl", "magika.trtc", "magika.json"))
    record.unlink(missing_ok=True)
    files = sorted(Path(__file__).parent.glob("*.py"))
    program = [sys.executable, "-c", PROGRAM, *files]
    trtc = [sys.executable, "-m", "trtc.tools.cli"]

    plain = run([*trtc, "exec", "-q", "--record", record, "--", *program])
    seconds = ["--measure-seconds", "0.5"] if given.quick else []
    run([*trtc, "build", model, "--traffic", record, "-o", bundle, "-q", *seconds])
    told = ["--record-before", record, "--summary", summary]
    served = run([*trtc, "exec", "-q", "--bundle", bundle, *told, "--", *program])

    rows = [line.rsplit(" ", 1) for line in served.splitlines()]
    print_table("file", ("file", "label"), rows)
    [found] = json.loads(summary.read_text())["models"]
    print_line(f"labels are {'the same' if served == plain else 'DIFFERENT'} on plain ONNX Runtime and on the bundle")
    left = sum(item["count"] for item in found["through"])
    print_line(f"{found['by_bundle']['calls']} calls by the bundle, {left} left to ONNX Runtime;")
    print_line(f"{1000 * found['compared_s']:.1f} ms each, {1000 * found['before_s']:.1f} ms in the recorded run")


def run(command: list[object]) -> str:
    """Run a command to its end and return what it printed; leave with its code where it fails."""
    done = subprocess.run(list(map(str, command)), check=False, stdout=subprocess.PIPE, text=True)  # noqa: S603
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


if __name__ == "__main__":
    main()
