"""What an engine holds on its device, in figures: one frozen value for whoever asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProfileNeeds:
    """Device memory that one call in one profile needs, in bytes; known before anything runs.

    Attributes:
        profile: its name.
        slot_bytes: inputs and outputs at the profile's bucket; outputs that the data sizes are not in it.
        scratch_bytes: what the library works in.
    """

    profile: str
    slot_bytes: int
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Memory of outputs that the data sizes.

    Attributes:
        held_bytes: of the blocks that wait to be used again.
        in_use_bytes: of the blocks that hold an output now.
        hits, misses: blocks that were there already, and those that had to be reserved.
        returned: blocks given back to the arena, because their size was not asked for any more.
    """

    held_bytes: int
    in_use_bytes: int
    hits: int
    misses: int
    returned: int


@dataclass(frozen=True, slots=True)
class DeviceStats:
    """Figures of this moment, in bytes.

    Attributes:
        device: index, name and compute capability.
        profiles: what one call in each profile needs.
        lane_bytes: what one call at a time needs in all: the largest slot and the largest scratch.
        reserved_bytes: taken from the driver by the arena of this device, for all sessions of the process.
        in_use_bytes, peak_bytes: of those, handed out now, and the most that ever was together.
        largest_free_bytes: the largest reservation that needs nothing new from the driver.
        fragmentation: share of the free bytes outside of the largest free span, 0..1.
        allocations: reservations so far; after warm-up this number must not grow.
        driver_allocations: times that the driver was asked for memory.
        pool: memory of outputs that the data sizes.
        lanes: calls that may run at once, as prepared so far.
        contexts: execution contexts made so far.
        graphs: buckets that run as one captured graph.
        without_graph: buckets that do not, because the engine or the driver refused to capture them.
    """

    device: str
    profiles: tuple[ProfileNeeds, ...]
    lane_bytes: int
    reserved_bytes: int
    in_use_bytes: int
    peak_bytes: int
    largest_free_bytes: int
    fragmentation: float
    allocations: int
    driver_allocations: int
    pool: PoolStats
    lanes: int
    contexts: int
    graphs: int
    without_graph: int
