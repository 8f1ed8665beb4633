"""ONNX's storage of elements smaller than a byte: several share one, the first in the lowest bits."""

from __future__ import annotations

from math import prod

import numpy as np

from trtc.engines.signature import PACKED, numpy_dtype


def _bits(dtype: str) -> int:
    return {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}[dtype]


def packed_bytes(count: int, dtype: str) -> int:
    """Bytes that ``count`` elements take in ONNX's storage."""
    return -(-count * _bits(dtype) // 8) if dtype in PACKED else count * numpy_dtype(dtype).itemsize


def pack(array: np.ndarray, dtype: str) -> np.ndarray:
    """Bring elements into ONNX's storage order: 2- and 4-bit elements share bytes, first element lowest."""
    if dtype not in PACKED:
        return array
    bits = _bits(dtype)
    per_byte = 8 // bits
    flat = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-len(flat) % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return np.asarray(np.bitwise_or.reduce(flat << shifts, axis=1), np.uint8)


def unpack(raw: np.ndarray, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Read stored bytes (uint8) as an array of its own, one element a byte where elements were packed."""
    found = numpy_dtype(dtype)
    if dtype not in PACKED:
        return raw.view(found).reshape(shape).copy()
    bits = _bits(dtype)
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    codes = ((raw[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[: prod(shape)]
    if dtype in ("int4", "int2"):
        codes = ((codes.astype(np.int16) ^ (1 << (bits - 1))) - (1 << (bits - 1))).astype(np.int8)
        return codes.astype(found).reshape(shape)
    return (codes.view(found) if dtype == "float4e2m1" else codes.astype(found)).reshape(shape)
