"""A short soak, and proof that each of its checks can fail. Long ones: ``make soak``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
CALLS = 24_000


def run(script: str, words: list[str], plant: str = "") -> tuple[dict, str]:
    """Run a command of ``make soak``; ``plant`` is Python code that breaks something first."""
    program = f"import runpy, sys\nsys.path.insert(0, {str(FOLDER)!r})\n{plant}\n"
    program += f"runpy.run_path({str(FOLDER / script)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout), done.stderr


def soak(calls: int, plant: str = "", rounds: int = 4) -> tuple[dict, str]:
    """Run the soak itself with the tiny models."""
    return run("soak.py", ["--tiny", "--calls", str(calls), "--rounds", str(rounds), "--reloads", "0"], plant)


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
            "bytes of malloc between two reloads",
            id="large-memory-that-is-kept",
        ),
        pytest.param(
            "import trtc.runtime.routes as m\nreal, kept = m.Route.has_kept_views, []\n"
            "def seen(self):\n    kept.append(object())\n    return real(self)\nm.Route.has_kept_views = seen",
            "blocks of Python between two reloads",
            id="small-objects-that-are-kept",
        ),
        pytest.param(
            "import ctypes, trtc.runtime.core as m\nreal, libc = m.write_inputs, ctypes.CDLL(None)\n"
            "def leak(*a):\n    libc.malloc(4000)\n    return real(*a)\nm.write_inputs = leak",
            "bytes of malloc between two reloads",
            id="native-memory-that-is-kept",
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


PLANTED = {"malloc": 4000, "blocks": 300, "resident": 4 * 2**20}
"""Of one load. Small tuples that hold each other are blocks of Python and nothing else."""
LEAKING_LOAD = f"""
import ctypes, mmap
import trtc.runtime.loader as m
real, kept, mapped, libc = m.remember, [()], [], ctypes.CDLL(None)
def leak(session):
    libc.malloc({PLANTED["malloc"]})
    for _ in range({PLANTED["blocks"]}):
        kept[0] = (kept[0],)
    pages = mmap.mmap(-1, {PLANTED["resident"]}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.write(bytes([1]) * {PLANTED["resident"]})
    mapped.append(pages)
    return real(session)
m.remember = leak
"""


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """A bundle and its model for ``reloads.py``."""
    folder = tmp_path_factory.mktemp("exact")
    program = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r}); from pathlib import Path; from work import serve; "
        f"from trtc.runtime import Arena; [one.close() for one in serve(Path({str(folder)!r}), Arena(), 1, None)]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    return [str(folder / "exact.trtc"), str(folder / "exact.onnx")]


def test_what_each_reload_keeps_is_measured_in_three_ways_that_do_not_depend_on_each_other(exact):
    figures, _ = run("reloads.py", [*exact, "--reloads", "24"], LEAKING_LOAD)
    for name, planted in PLANTED.items():
        assert planted * 0.9 <= figures["trtc"][name] <= planted * 1.2, name
    assert len(figures["problems"]) == 3
    for unit in ("bytes of malloc", "blocks of Python", "resident bytes"):
        assert any(unit in problem for problem in figures["problems"])
    assert figures["plain ONNX Runtime"]["malloc"] < PLANTED["malloc"] / 2
