"""Which distribution brings a library, and in which version: for GPU libraries, packages and modules differ in name."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from trtc.engines.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_KNOWN = {
    # These two install the same module: the first that is there counts, `trtc doctor` warns about both.
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "tensorrt": ("tensorrt", "tensorrt-cu13", "tensorrt-cu12", "tensorrt-lean-cu13", "tensorrt-lean-cu12"),
    "tensorrt_lean": ("tensorrt-lean", "tensorrt-lean-cu13", "tensorrt-lean-cu12"),
    "tensorrt_rtx": ("tensorrt-rtx", "tensorrt-rtx-cu13", "tensorrt-rtx-cu12"),
}
_CUDA = re.compile(r"[-_]cu(\d+)$")


class Distribution(Value, frozen=True):
    """An installed distribution.

    Attributes:
        name: such as ``tensorrt-rtx-cu13``.
        version: such as ``1.7.1.116``.
    """

    name: str
    version: str

    @property
    def cuda_major(self) -> int | None:
        """The CUDA that it was built for, where its name says so."""
        found = _CUDA.search(self.name)
        return int(found[1]) if found else None


@cache
def _owners() -> Mapping[str, list[str]]:
    """Read which distributions each module came from, once a process: it takes a tenth of a second."""
    from importlib.metadata import packages_distributions

    return packages_distributions()


def _version(name: str) -> str:
    """Return the version of an installed distribution; what reads it takes 15 ms to import, and is seldom needed."""
    from importlib.metadata import version

    return version(name)


def find_distribution(
    library: str,
    version_of: Callable[[str], str] = _version,
    owners_of: Callable[[str], Iterable[str]] = lambda module: _owners().get(module, ()),
) -> Distribution | None:
    """Find the installed distribution of a library.

    Args:
        library: name of a distribution, or of the module that it brings.
        version_of: raises ModuleNotFoundError for what is not installed.
        owners_of: distributions that a module came from; asked last, because it reads every installed package.

    Returns:
        None when nothing that is installed brings it.
    """
    for name in _candidates(library, owners_of):
        try:
            return Distribution(name, version_of(name))
        except ModuleNotFoundError:
            continue
    return None


def _candidates(library: str, owners_of: Callable[[str], Iterable[str]]) -> Iterator[str]:
    yield from _KNOWN.get(library, (library,))
    yield from owners_of(library)
