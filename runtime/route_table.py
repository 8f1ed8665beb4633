"""The table of prepared routes of one slot: bounded, with a second chance for what was used lately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtc.runtime.routes import Route

MAX_ROUTES = 1024
"""Prepared routes that one slot keeps (a few KiB each)."""


def make_room(routes: dict[Any, Route], limit: int = MAX_ROUTES) -> int:
    """Forget routes until one more fits below ``limit``; return how many went.

    The oldest one that was not used since the last look goes first (the clock algorithm of page replacement).
    """
    forgotten = 0
    while len(routes) >= limit:
        key = next(iter(routes))
        route = routes.pop(key)
        if route.used:
            route.used = False
            routes[key] = route
        else:
            forgotten += 1
    return forgotten
