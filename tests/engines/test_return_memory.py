"""What ``free`` left with malloc goes back to the system when an engine is closed."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trtc.engines.memory import return_freed_memory
from trtc.engines.onnxruntime.load import open_graph

LIBC = ctypes.CDLL(None)
pytestmark = pytest.mark.skipif(not hasattr(LIBC, "malloc_trim"), reason="this C library returns memory by itself")
PIECE_BYTES, PIECES = 20_000, 4_000


def resident_bytes() -> int:
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) * 1024


@pytest.fixture
def freed_bytes():
    """Pieces that were written and freed, with some between them in use: malloc keeps their pages."""
    LIBC.malloc.restype, LIBC.malloc.argtypes, LIBC.free.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_size_t],
        [ctypes.c_void_p],
    )
    pieces = [LIBC.malloc(PIECE_BYTES) for _ in range(PIECES)]
    for piece in pieces:
        ctypes.memset(piece, 1, PIECE_BYTES)
    used = set(pieces[::10])
    for piece in pieces:
        if piece not in used:
            LIBC.free(piece)
    yield PIECE_BYTES * (PIECES - len(used))
    for piece in used:
        LIBC.free(piece)


@pytest.fixture
def engine(tmp_path):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    return open_graph(tmp_path / "m.onnx", 1)


def test_closing_an_engine_returns_what_was_freed(engine, freed_bytes):
    before = resident_bytes()
    engine.close()
    assert before - resident_bytes() > freed_bytes * 0.8


def test_memory_in_use_keeps_its_values(freed_bytes):
    kept = [np.full(5000, number, np.float32) for number in range(500)]
    return_freed_memory()
    assert freed_bytes
    assert all((array == number).all() for number, array in enumerate(kept))


def test_a_library_without_such_a_call_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    return_freed_memory()
