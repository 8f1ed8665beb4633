"""What a session tells about itself: its figures, and why it runs as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.value import Value
from trtc.profiles import sizes_text

if TYPE_CHECKING:
    from trtc.engines.chunks import ArenaStats
    from trtc.engines.device_stats import DeviceStats
    from trtc.engines.manifest import Execution
    from trtc.runtime.verdicts import Verdict


class SessionStats(Value, frozen=True):
    """Figures of this moment.

    Attributes:
        arena: the arena that the session uses, maybe with others.
        slots: calls that may run at once.
        slot_bytes: planned bytes of one slot; 0 where maxima are open and slots grow.
        slot_used_bytes: bytes of all slots that the routes which ran last really use.
        fragmentation: share of the slots' memory that those routes leave unused, 0..1.
        routes_prepared, routes_forgotten: entries that were made, and dropped from a full table.
        slot_growths: times that a slot had to take a larger block (open maxima only).
        kept_views: borrowed views that outlived their block.
        lost_leases: borrows that were dropped while open.
        device: what the engine holds on its device; None where it has none of its own, or was closed.
    """

    arena: ArenaStats
    slots: int
    slot_bytes: int
    slot_used_bytes: int
    fragmentation: float
    routes_prepared: int
    routes_forgotten: int
    slot_growths: int
    kept_views: int
    lost_leases: int
    device: DeviceStats | None = None


class Explanation(Value, frozen=True):
    """Why a session runs as it does.

    Attributes:
        engine: name of the engine that was chosen.
        verdicts: on every engine of the bundle.
        execution: mode, slots and threads in force, with the reason from the build.
        profile: the profile that the asked sizes run in; None when no sizes were asked about.
        run_sizes: the sizes that they run at.
    """

    engine: str
    verdicts: tuple[Verdict, ...]
    execution: Execution
    profile: str | None = None
    run_sizes: dict[str, int] | None = None

    def __str__(self) -> str:
        e = self.execution
        lines = [f"engine {self.engine}"]
        lines += [f"  {'+' if v.fits else '-'} {v.engine}: {v.reason}" for v in self.verdicts]
        lines.append(
            f"sizes run {'exact' if e.mode == 'exact' else 'padded to the bucket'}, {counted(e.slots, 'call')} at "
            f"once, {counted(e.threads, 'thread')} each" + (f" ({e.reason})" if e.reason else "")
        )
        if self.profile is not None and self.run_sizes is not None:
            lines.append(f"this request runs in profile {self.profile} at {sizes_text(self.run_sizes)}")
        return "\n".join(lines)


def counted(count: int, noun: str) -> str:
    """Write a count with its noun, such as ``1 call`` or ``2 calls``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
