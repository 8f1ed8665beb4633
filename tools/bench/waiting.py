"""How idle threads wait for work: actively, faster for a lone call, or asleep, which leaves processors to others.

Two sides of a comparison that wait in different ways measure the machine's other work, and not the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trtc.engines.host import this_host
from trtc.runtime.loader import idle_threads_spin

if TYPE_CHECKING:
    from trtc.runtime import Session

    Waiting = Literal["spin", "sleep", "its own way"]

CHOOSES = frozenset(["onnxruntime"])
"""Backends whose threads wait as ``load(..., spinning=)`` says; the others' libraries decide."""


def for_one_caller(threads: int | None, slots: int | None) -> bool | None:
    """Return how to load a bundle that one caller at a time uses: threads of slots that stay idle take no processor.

    Args:
        threads: of one call, where they were chosen.
        slots: calls at once, where they were chosen: then the bundle opens as it does for so many.

    Returns:
        Whether idle threads wait actively; None leaves it to ``load``.
    """
    if slots is not None and slots > 1:
        return None
    return (threads or 1) <= this_host().threads


def spinning_of(session: Session) -> bool | None:
    """Tell whether idle threads of a session wait actively; None where its library decides."""
    loaded, _ = session.parts
    if loaded.record.backend not in CHOOSES:
        return None
    return idle_threads_spin(loaded.execution, this_host().threads, loaded.options["spinning"])


def waiting(spinning: bool | None) -> Waiting:  # noqa: FBT001 (what it is about)
    """Name how threads wait."""
    return "its own way" if spinning is None else "spin" if spinning else "sleep"


def both_waiting(ours: bool | None, peer: bool | None) -> str:  # noqa: FBT001 (as above)
    """Say how threads of both sides wait, after the words "idle threads"."""
    if ours is not None and ours == peer:
        return f"both sides {waiting(ours)}"
    of = [
        f"{side} wait as {library} decides" if spinning is None else f"{side} {waiting(spinning)}"
        for side, library, spinning in (("ours", "the engine's library", ours), ("the peer's", "its library", peer))
    ]
    return ", ".join(of)
