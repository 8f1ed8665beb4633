"""The library by name: ``tensorrt`` or ``tensorrt_rtx``. Both are one family of interfaces."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from trtc.engines.registry import backend_named
from trtc.profiles import HostError

TENSORRT, RTX = "tensorrt", "tensorrt_rtx"


def open_library(name: str) -> Any:
    """Import the library. What it can do is asked of its members, never of its version.

    Args:
        name: ``tensorrt`` or ``tensorrt_rtx``, which is also the name of the backend.

    Raises:
        HostError: when it is not installed, or does not import here.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise HostError(f"{name} cannot be imported ({error}); {backend_named(name).install}") from error
