"""What one model was asked for in this process: calls by the shapes of their inputs, their seconds, and exceptions."""

from __future__ import annotations

import time
from collections import Counter
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtc.runtime.compat.samples import Sampler

    Shapes = tuple[tuple[int, ...], ...]

MAX_SHAPES = 4096
"""Different shapes that are counted between two writings (about 1 MiB of memory)."""
MAX_TIMES = 16384
"""Arrival times that are kept between two writings; calls beyond are counted without one."""
MAX_REASONS = 64
"""Different ones that are kept between two writings."""
MAX_REASON = 1000
"""Characters of a reason."""
_MORE = " ..."


class Calls:
    """Calls of equal shapes, answered by one of the two, since the last writing."""

    __slots__ = ("count", "seconds", "squares", "times_s")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.squares = 0.0
        self.times_s: list[float] = []


class ModelCounts:
    """Counts of one model. Thread-safe.

    Args:
        digest: SHA-256 of the model file.
        name: of the file, for people.
        sampler: takes feeds; None where values are not recorded.
        write: called when counts should be written; it calls ``drain``.

    Attributes:
        due_s: when that is, on the clock of ``time.perf_counter``.
        served: whether a bundle ever stood in: then seconds are no figures of ONNX Runtime.
    """

    def __init__(self, digest: str, name: str, sampler: Sampler | None, write: Callable[[], None]) -> None:
        self.digest = digest
        self.name = name
        self.due_s = 0.0
        self.sampler = sampler
        self.served = False
        self._write = write
        self.forget()

    def forget(self) -> None:
        """Begin anew, with locks of its own: in a forked child, whose parent writes what was counted."""
        self._lock = RLock()
        self._calls: dict[tuple[tuple[str, ...], Shapes, bool], Calls] = {}
        self._times_left = MAX_TIMES
        self._lost = 0
        self._through: Counter[tuple[str, str]] = Counter()
        self._opened: list[tuple[float, str]] = []

    def answered(self, names: tuple[str, ...], shapes: Shapes, begin: float, feeds: Mapping[str, Any]) -> None:
        """Count a call that a bundle answered, as ``note``."""
        self.note(names, shapes, begin, feeds, by_bundle=True)

    def note(
        self,
        names: tuple[str, ...],
        shapes: Shapes,
        begin: float,
        feeds: Mapping[str, Any],
        *,
        by_bundle: bool = False,
    ) -> None:
        """Count a call that began at ``begin`` (of ``perf_counter``) and has just ended."""
        end = perf_counter()
        key = (names, shapes, by_bundle)
        sampler = self.sampler
        with self._lock:
            calls = self._calls.get(key)
            if calls is None:
                if len(self._calls) >= MAX_SHAPES:
                    self._lost += 1
                    return
                calls = self._calls[key] = Calls()
            calls.count += 1
            calls.seconds += end - begin
            calls.squares += (end - begin) ** 2
            if self._times_left:
                self._times_left -= 1
                calls.times_s.append(time.time())
            wanted = sampler is not None and sampler.wants()
        if wanted and sampler is not None:
            sampler.take(feeds)
        if end >= self.due_s:
            self._write()

    def note_feeds(self, feeds: Any, begin: float) -> None:
        """Count a call of ONNX Runtime itself, whatever its feeds are."""
        try:
            names = tuple(feeds)
            shapes = tuple([feeds[name].shape for name in names])
            if any(type(shape) is not tuple for shape in shapes):
                names, shapes = _odd_shapes(feeds)
        except AttributeError:
            names, shapes = _odd_shapes(feeds)
        except Exception:  # noqa: BLE001 (anybody's objects; ONNX Runtime has taken them)
            names, shapes = (), ()
        if names:
            self.note(names, shapes, begin, feeds)
        else:
            with self._lock:
                self._lost += 1

    def fell_through(self, method: str, reason: str) -> None:
        """Count what only ONNX Runtime could do."""
        with self._lock:
            key = (method, _cut(reason))
            if key not in self._through and len(self._through) >= MAX_REASONS:
                key = (method, "further reasons")
            self._through[key] += 1
        if perf_counter() >= self.due_s:
            self._write()

    def opened(self, seconds: float, bundle: str) -> None:
        """Note a session that was opened; ``bundle`` is empty for one of ONNX Runtime itself."""
        with self._lock:
            self.served = self.served or bool(bundle)
            self._opened.append((seconds, bundle))

    def drain(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return what was counted since the last time: calls for record and report, and further entries of the report.

        ``squares`` (of the seconds of each call) and ``by_bundle`` (who answered) are no part of a record.
        """
        with self._lock:
            calls, self._calls = self._calls, {}
            through, self._through = self._through, Counter()
            opened, self._opened = self._opened, []
            lost, self._lost = self._lost, 0
            self._times_left = MAX_TIMES
        who: dict[str, Any] = {"model": self.digest, "name": self.name}
        record = [
            {
                **who,
                "inputs": dict(zip(names, map(list, shapes), strict=True)),
                "count": entry.count,
                "seconds": round(entry.seconds, 7),
                "squares": entry.squares,
                "by_bundle": by_bundle,
                "times_s": [round(moment, 4) for moment in entry.times_s],
            }
            for (names, shapes, by_bundle), entry in calls.items()
        ]
        report = [{**who, "opened_s": round(s, 6), "bundle": bundle} for s, bundle in opened]
        report += [
            {**who, "method": method, "reason": reason, "count": count} for (method, reason), count in through.items()
        ]
        if lost:
            report.append({**who, "lost": lost})
        return record, report


def _cut(reason: str) -> str:
    """Leave out what is too long, from a word on: the advice stands at the end."""
    if len(reason) <= MAX_REASON:
        return reason
    kept = reason[: MAX_REASON + 1 - len(_MORE)]
    return (kept.rpartition(" ")[0] or kept[:-1]) + _MORE


def _odd_shapes(feeds: Any) -> tuple[tuple[str, ...], Shapes]:
    """Shapes of lists and OrtValues; nothing where they have none."""
    import numpy as np

    try:
        names = tuple(feeds)
        found = []
        for name in names:
            value = feeds[name]
            shape = value.shape() if callable(getattr(value, "shape", None)) else np.shape(value)
            found.append(tuple(int(size) for size in shape))
    except Exception:  # noqa: BLE001 (as above)
        return (), ()
    return names, tuple(found)
