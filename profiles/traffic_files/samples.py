"""Samples: each ``.npz`` file is one request, its arrays named like the inputs; only their headers are read."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from numpy.lib import format as npy

from trtc.profiles.dims import shape_text
from trtc.profiles.errors import UsageError
from trtc.profiles.nearest import unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trtc.profiles.dims import Dim
    from trtc.profiles.traffic_files.collect import Collector


def read_sample(path: Path, input_dims: Mapping[str, tuple[Dim, ...]], collector: Collector) -> None:
    """Count the request that a file holds.

    Args:
        path: of the ``.npz`` file.
        input_dims: dims of each input of the model.
        collector: counts it.

    Raises:
        UsageError: for a file that is no ``.npz``, unknown inputs, and shapes that contradict the model or each other.
        OSError: when the file cannot be read.
    """
    sizes: dict[str, int] = {}
    for name, shape in _shapes(path).items():
        if name not in input_dims:
            raise UsageError(f"{path}: {unknown_name('input', name, input_dims)}; save arrays under the inputs' names")
        dims = input_dims[name]
        if len(shape) != len(dims):
            raise UsageError(
                f"{path}: {name!r} is {list(shape)}, but the model has {shape_text(dims)}; save it as that"
            )
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
                raise UsageError(f"{path}: {dim} is {sizes[dim]} and, in {name!r}, {size}; save inputs of one request")
            if isinstance(dim, int) and dim != size:
                raise UsageError(
                    f"{path}: {name!r} is {list(shape)}, but the model has {shape_text(dims)}; save it as that"
                )
    collector.add(sizes, 1, None, str(path))


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy"): _shape(archive, name) for name in archive.namelist()}
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"{path}: {error}; save samples with numpy.savez") from error


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as file:
        major, _ = npy.read_magic(file)
        read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
        shape: tuple[int, ...] = read(file)[0]
        return shape
