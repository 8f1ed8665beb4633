"""Libraries of plug-ins: code of somebody else that TensorRT opens, to read a model and again to run its engine.

Whoever calls has settled before that this code may run: it is named by its digest, and the caller has allowed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def load_plugins(registry: Any, libraries: Iterable[Path]) -> Path | None:
    """Open libraries and register what they bring, in order.

    Args:
        registry: of a builder or a runtime, so that what is registered ends with it and never meets what others
            registered in this process.
        libraries: shared libraries that export ``getCreators`` and ``setLoggerFinder``.

    Returns:
        The first library that the registry refuses; why stands in the log. None when all are in.
    """
    return next((library for library in libraries if registry.load_library(str(library)) is None), None)


def operators_of(registry: Any) -> tuple[str, ...]:
    """Return the operators that the plug-ins of a registry stand for, without those of its parents."""
    return tuple(sorted({creator.name for creator in registry.all_creators}))
