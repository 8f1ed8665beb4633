"""What the machine did while it was measured: clock frequency, throttling, other work. Read from files of Linux."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from trtc.engines.cgroup import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SLOWER = 0.9
"""A frequency that fell below this share of the one before is worth a word."""
BUSY = 0.1
"""Processors' worth of other work, in shares of the machine, above which figures are doubtful."""


class Moment(msgspec.Struct, frozen=True):
    """Readings of one moment; None where the system does not tell.

    ``frequency_mhz``: mean over the processors. ``thermal_events``: times that a core or package was slowed by its
    temperature, since the machine started. ``quota_throttled_s``: seconds that the cgroup's quota kept this group from
    running. ``load``: processes that want a processor, over the last minute. ``governor``: how frequency is chosen.
    """

    frequency_mhz: float | None
    thermal_events: int | None
    quota_throttled_s: float | None
    load: float | None
    governor: str | None


class Conditions(msgspec.Struct, frozen=True):
    """Readings before and after, and what they mean for the figures; ``warnings`` is empty when all is well.

    ``loaded``: whether one of the warnings is about other work.
    """

    before: Moment
    after: Moment
    warnings: tuple[str, ...]
    loaded: bool = False


def read_moment(root: Path = ROOT) -> Moment:
    """Read the machine's state.

    Args:
        root: folder that holds ``proc`` and ``sys``.
    """
    processors = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*"))
    khz = _numbers(p / "cpufreq/scaling_cur_freq" for p in processors)
    info = re.findall(r"^cpu MHz\s*:\s*([0-9.]+)", _text(root / "proc/cpuinfo"), re.MULTILINE)
    mhz = [number / 1000 for number in khz] or [float(number) for number in info]
    events = [
        *_numbers(p / "thermal_throttle/core_throttle_count" for p in processors),
        *_numbers(p / "thermal_throttle/package_throttle_count" for p in processors),
    ]
    throttled = re.search(r"^throttled_usec ([0-9]+)", _text(_own_group(root) / "cpu.stat"), re.MULTILINE)
    load = _text(root / "proc/loadavg").split()
    governor = _text(processors[0] / "cpufreq/scaling_governor").strip() if processors else ""
    return Moment(
        frequency_mhz=sum(mhz) / len(mhz) if mhz else None,
        thermal_events=int(sum(events)) if events else None,
        quota_throttled_s=int(throttled[1]) / 1e6 if throttled else None,
        load=float(load[0]) if load else None,
        governor=governor or None,
    )


def conditions_of(before: Moment, after: Moment, processors: int | None = None) -> Conditions:
    """Say what changed between two moments that a reader of figures must know.

    Args:
        before: reading before the measurement.
        after: reading after it.
        processors: of the machine; None counts them.
    """
    count = processors or os.cpu_count() or 1
    warnings = []
    loaded = before.load is not None and before.load > max(1, BUSY * count)
    if loaded:
        warnings.append(
            f"{before.load:g} processes wanted {count} processors in the minute before; stop other work and measure "
            "again"
        )
    if _grew(before.thermal_events, after.thermal_events):
        warnings.append("the processor was slowed by its temperature meanwhile; let it cool and measure again")
    if _grew(before.quota_throttled_s, after.quota_throttled_s):
        held_s = (after.quota_throttled_s or 0) - (before.quota_throttled_s or 0)
        warnings.append(f"the cgroup's quota held this process for {held_s:.3g} s; use fewer --threads or raise it")
    if before.frequency_mhz and after.frequency_mhz and after.frequency_mhz < SLOWER * before.frequency_mhz:
        warnings.append(f"the clock fell from {before.frequency_mhz:.0f} to {after.frequency_mhz:.0f} MHz meanwhile")
    return Conditions(before, after, tuple(warnings), loaded)


def _grew(before: float | None, after: float | None) -> bool:
    return before is not None and after is not None and after > before


def _own_group(root: Path) -> Path:
    found = re.search(r"^0::/?(.*)$", _text(root / "proc/self/cgroup"), re.MULTILINE)
    return root / "sys/fs/cgroup" / (found[1] if found and ".." not in found[1] else "")


def _numbers(files: Iterable[Path]) -> list[float]:
    texts = (_text(file).strip() for file in files)
    return [float(text) for text in texts if text.isdecimal()]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
