"""A machine with a GPU that is not there: TensorRT's runtime and ``cuda.core`` over host memory and ONNX Runtime.

It offers what ``engines/tensorrt/load.py`` uses and nothing else, runs real engines (see ``store``), and enforces what
the two libraries demand of their callers: a breach that a real device would answer with wrong numbers, or with a crash
much later, ends the test at once. Nothing is executed before somebody waits for it.
"""

from __future__ import annotations

from simulator.machine import Machine
from simulator.store import BuiltModel, EngineStore
from simulator.world import BreachError

__all__ = ["BreachError", "BuiltModel", "EngineStore", "Machine"]
