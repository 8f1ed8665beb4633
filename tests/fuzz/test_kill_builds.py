"""Builds that are killed just before a change to the disk; ``make fuzz`` kills at every one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def kill_builds(*words: str, plant: str = "") -> tuple[int, list[dict]]:
    program = f"import runpy, sys\nsys.path.insert(0, {str(FOLDER)!r})\n{plant}\n"
    program += f"runpy.run_path({str(FOLDER / 'kill_builds.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_whatever_a_killed_build_had_done_the_bundle_is_whole_and_the_next_build_cleans_up():
    code, reports = kill_builds("--every", "15")
    assert [report["problems"] for report in reports] == [{}, {}]
    assert code == 0
    assert [report["over"] for report in reports] == ["nothing", "an old bundle"]
    assert all(report["changes"] >= 30 and report["kills"] >= 3 for report in reports)


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        pytest.param(
            "import trtc.engines.bundle as m\nreal = m._put_blobs\n"
            "def early(folder, *rest):\n    (folder / 'manifest.json').write_bytes(b'{}')\n    real(folder, *rest)\n"
            "m._put_blobs = early",
            "the bundle then serves -1 rows",
            id="a-manifest-before-its-blobs",
        ),
    ],
)
def test_a_planted_fault_is_noticed(plant, said):
    code, reports = kill_builds("--every", "5", "--over", "nothing", plant=plant)
    assert code == 1
    assert said in json.dumps([report["problems"] for report in reports])
