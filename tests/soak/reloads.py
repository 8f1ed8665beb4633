"""What stays of a bundle that is closed and loaded again: ``python tests/soak/reloads.py BUNDLE MODEL``.

Four new threads call the bundle at 64 sizes, then it is closed; again and again. A second process does the same with
plain ONNX Runtime: one session, and one binding for each size and slot. The first half of the reloads is warm-up;
over the second half, memory must rise with each reload by no more than plain ONNX Runtime's. The exit code is 1 where
it does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
from memory import sample, settle_names, slope

from trtc.runtime import Arena, load

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[dict[str, np.ndarray]], object]

SLOTS, CALLERS = 3, 4
LIMITS = {"malloc": 512.0, "blocks": 1.0, "resident": 16 * 1024.0}
"""Growth of one reload beyond plain ONNX Runtime's: bytes handed out, blocks of Python, resident bytes.

Resident memory is the coarse one: malloc takes memory from the system in steps that are larger than this."""
FEEDS = [{"x": np.full((rows, 4), rows, np.float32)} for rows in range(1, 65)]


def ours(bundle: Path, arena: Arena) -> None:
    """Load, call, close."""
    with load(bundle, slots=SLOTS, threads=1, arena=arena) as session:
        _call_from_threads(session.run)


def plain(model: Path, _arena: Arena) -> None:
    """Do the same with a session of ONNX Runtime and bindings on memory of ours."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    slots: list[dict[Any, Any]] = [{} for _ in range(SLOTS)]

    def run(feeds: dict[str, np.ndarray]) -> object:
        try:
            bound = slots.pop()
        except IndexError:
            return session.run(names, feeds)
        shape = feeds["x"].shape
        if shape not in bound:
            binding, arrays = (
                session.io_binding(),
                {**feeds, **dict(zip(names, session.run(names, feeds), strict=True))},
            )
            for name, array in arrays.items():
                bind = binding.bind_input if name in feeds else binding.bind_output
                bind(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
            bound[shape] = binding, arrays, onnxruntime.RunOptions()
        session.run_with_iobinding(bound[shape][0], bound[shape][2])
        slots.append(bound)
        return None

    _call_from_threads(run)


def _call_from_threads(run: Run) -> None:
    failures: list[Exception] = []

    def work() -> None:
        try:
            for feeds in FEEDS:
                run(feeds)
        except Exception as error:  # noqa: BLE001 (raised again below)
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def measure(side: str, path: Path, reloads: int) -> dict[str, Any]:
    """Reload in this process; return the growth of each reload over the second half, and what was held at the end."""
    arena = Arena()
    settle_names()
    kept = {name: np.zeros(reloads, np.int64) for name in (*LIMITS, "freed")}  # made before: a list would grow
    for number in range(reloads):
        (ours if side == "ours" else plain)(path, arena)
        held = sample(arena)
        for name, values in kept.items():
            values[number] = getattr(held, name)
    seen = (0, reloads // 4, reloads // 2, -1)
    return {
        **{name: round(slope(kept[name][reloads // 2 :].tolist()), 1) for name in LIMITS},
        "resident_bytes": kept["resident"][list(seen)].tolist(),
        "freed_bytes": kept["freed"][list(seen)].tolist(),
        "arena_in_use": arena.stats.in_use_bytes,
        "threads": threading.active_count(),
    }


def problems(found: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    """Say what rises with each reload."""
    said = [
        f"each reload keeps {found[name] - peer[name]:.1f} {unit} more than plain ONNX Runtime's"
        for name, unit in (
            ("malloc", "bytes of malloc"),
            ("blocks", "blocks of Python"),
            ("resident", "resident bytes"),
        )
        if found[name] - peer[name] > LIMITS[name]
    ]
    said += [f"{found['arena_in_use']} bytes of the arena are in use after close"] if found["arena_in_use"] else []
    return said + (["threads are left"] if found["threads"] > peer["threads"] else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="a bundle whose only input is x: float32 [rows, 4], 1..64 rows")
    parser.add_argument("model", type=Path, help="its model; with --side plain, path is the model")
    parser.add_argument("--reloads", type=int, default=400)
    parser.add_argument("--side", choices=["ours", "plain"], default="ours")
    given = parser.parse_args()
    found = measure(given.side, given.path, given.reloads)
    if given.side == "plain":
        print(json.dumps(found))
        return 0
    command = [sys.executable, __file__, given.model, given.model, "--side", "plain", "--reloads", str(given.reloads)]
    peer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    said = problems(found, peer)
    print(json.dumps({"reloads": given.reloads, "trtc": found, "plain ONNX Runtime": peer, "problems": said}, indent=2))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
