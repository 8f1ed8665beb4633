"""A short soak, and proof that each of its checks can fail. Long ones: ``make soak``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
CALLS = 24_000


def soak(calls: int, plant: str = "", rounds: int = 4) -> tuple[dict, str]:
    """Run the command of ``make soak`` with the tiny models; ``plant`` is Python code that breaks something first."""
    program = f"import runpy, sys\nsys.path.insert(0, {str(FOLDER)!r})\n{plant}\n"
    program += f"runpy.run_path({str(FOLDER / 'soak.py')!r}, run_name='__main__')"
    words = ["--tiny", "--calls", str(calls), "--rounds", str(rounds)]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout), done.stderr


def test_mixed_calls_from_many_threads_are_all_right_and_reserve_nothing_after_warm_up():
    figures, _ = soak(CALLS)
    assert figures["failures"] == []
    assert figures["reserved_in_plain_rounds"] == 0
    assert len(figures["arena_in_use_bytes"]) == 1
    assert figures["arena_left_bytes"] == 0
    assert figures["sizes"] >= 200
    assert {"run", "borrow", "cancelled", "wrong request"} <= figures["calls_by_kind"].keys()
    assert sum(figures["calls_by_kind"].values()) == figures["calls"] >= CALLS * 0.95
    assert figures["reloads"] == 1


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        pytest.param(
            "import trtc.runtime.core as m, numpy as np\nreal = m.write_inputs\n"
            "def stale(slot, route, arrays):\n"
            "    real(slot, route, [np.zeros_like(a) if a.size % 7 == 0 else a for a in arrays])\n"
            "m.write_inputs = stale",
            "a wrong answer",
            id="inputs-that-are-not-copied",
        ),
        pytest.param(
            "import trtc.runtime.core as m\nreal = m.Core.run\n"
            "def run(self, *a):\n    self._arena.release(self._arena.reserve(1))\n    return real(self, *a)\n"
            "m.Core.run = run",
            "reservations after warm-up",
            id="memory-that-is-reserved-in-calls",
        ),
        pytest.param(
            "import trtc.runtime.core as m\nreal = m.Core.run\nkept = []\n"
            "def run(self, *a):\n    kept.append(bytearray(50_000))\n    return real(self, *a)\n"
            "m.Core.run = run",
            "memory grew by",
            id="memory-that-is-kept",
        ),
        pytest.param(
            "import trtc.runtime.core as m\nm.Core.drain = lambda self, reason: self.pool.close(reason)",
            "the arena holds",
            id="a-close-that-gives-nothing-back",
        ),
    ],
)
def test_a_planted_fault_is_noticed(plant, said):
    figures, told = soak(8_000, plant, rounds=6)
    assert figures["calls"]
    assert said in told
