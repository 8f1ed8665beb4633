"""Names of a package that are imported when they are first used: programs wait for imports, and use few names."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def on_demand(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package.

    Hide both from type checkers; for them a package imports its names under ``TYPE_CHECKING``.

    Args:
        package: its name.
        homes: the names that each module defines for it.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}; it exports {', '.join(sorted(home_of))}"
            )
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(home_of)
