"""What a session was asked for, kept in a file that ``trtc plan --traffic`` reads.

Counts of sizes, not requests: a thread adds one to a count, and every few seconds the caller that comes next appends
all as JSON lines. The file holds whole lines at any moment, so it can be read while it is written and after a kill;
several sessions, processes and restarts may share one.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from trtc.profiles import HostError, UsageError
from trtc.runtime.errors import TrafficWarning
from trtc.runtime.whole_lines import cut_to_whole_lines, locked, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from trtc.engines.signature import Signature, TensorSpec

    Shapes = tuple[tuple[int, ...] | None, ...]

MAX_SHAPES = 4096
"""Different shapes that are counted before they are written (about 1 MiB of memory)."""
FLUSH_S = 5.0
"""Counts wait at most this long for the next request to write them; that much a kill can lose."""
MERGE_BYTES = 2**20
"""A file that has grown by this much is rewritten with one line for each size."""
MAX_FILE_BYTES = 64 * 2**20
"""A merged file larger than this takes nothing more: nobody serves that many different sizes."""


class TrafficLog:
    """Counts the sizes of requests and appends them to a file. Thread-safe.

    Args:
        path: of the file; made when it is missing, continued when it is there.
        signature: of the bundle: which axis of which input is which symbol.

    Attributes:
        path: as given, absolute.
        lost: requests that could not be recorded: the disk was full, or shapes said no sizes.

    Raises:
        UsageError: for a folder, or a signature without symbols.
        HostError: when the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], signature: Signature) -> None:
        self.path = Path(path).absolute()
        self.lost = 0
        self._specs = _telling_inputs(signature)
        if not self._specs:
            raise UsageError(
                "this bundle has one size only, so there is no traffic to record; leave record_traffic out"
            )
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; give the path of a file, such as {self.path / 'traffic.jsonl'}")
        self._first = self._specs[0].name if len(self._specs) == 1 else ""
        self._names = tuple(spec.name for spec in self._specs)
        self._counts: Counter[Shapes] = Counter()
        self._lock = Lock()  # of the counts
        self._writing = Lock()
        self._process = os.getpid()
        self._merged_bytes = 0
        self._due_s = time.monotonic() + FLUSH_S
        self._warned = False
        try:
            self._append("")
        except OSError as error:
            raise HostError(
                f"{self.path}: traffic cannot be written there: {error.strerror}; give another path"
            ) from error

    def note(self, feeds: Mapping[str, Any]) -> None:
        """Count one request by its shapes; it need not be one that is served. Never raises for what it holds."""
        try:
            shapes: Shapes = (
                (feeds[self._first].shape,) if self._first else tuple([feeds[name].shape for name in self._names])
            )
        except (LookupError, AttributeError, TypeError):
            shapes = self._odd_shapes(feeds)
        with self._lock:
            if shapes in self._counts or len(self._counts) < MAX_SHAPES:
                self._counts[shapes] += 1
            else:
                self.lost += 1
            due = time.monotonic() >= self._due_s or len(self._counts) >= MAX_SHAPES
        if due:
            self.flush(wait=False)

    def flush(self, *, wait: bool = True) -> None:
        """Append the counts to the file. With ``wait`` False, leave that to another thread that is at it already."""
        if os.getpid() != self._process or not self._writing.acquire(blocking=wait):
            return  # a forked child has counts of its parent, which writes them itself
        try:
            with self._lock:
                counts, self._counts = self._counts, Counter()
                self._due_s = time.monotonic() + FLUSH_S
            lines, unread = self._lines(counts)
            try:
                if lines:
                    self._append("".join(lines))
                with self._lock:
                    self.lost += unread
            except OSError as error:
                with self._lock:
                    self._take_back(counts)
                self._warn(f"{self.path}: traffic cannot be written now: {error.strerror}; it is tried again")
        finally:
            self._writing.release()

    def _take_back(self, counts: Counter[Shapes]) -> None:
        for shapes, count in counts.items():
            if shapes in self._counts or len(self._counts) < MAX_SHAPES:
                self._counts[shapes] += count
            else:
                self.lost += count

    def _odd_shapes(self, feeds: Mapping[str, Any]) -> Shapes:
        """Shapes of anything that has one: lists, numbers; None for what was left out or is no mapping."""
        import numpy as np

        found: list[tuple[int, ...] | None] = []
        for name in self._names:
            try:
                value = feeds[name]
                shape = value.shape if hasattr(value, "shape") else np.shape(value)
                found.append(tuple(int(size) for size in shape))
            except Exception:  # noqa: BLE001 (anybody's objects; the request itself says what is wrong with them)
                found.append(None)
        return tuple(found)

    def _lines(self, counts: Counter[Shapes]) -> tuple[list[str], int]:
        """Write counts as JSON lines; also how many requests said no sizes."""
        by_sizes: Counter[tuple[tuple[str, int], ...]] = Counter()
        unread = 0
        for shapes, count in counts.items():
            sizes = self._sizes(shapes)
            if sizes is None:
                unread += count
            else:
                by_sizes[sizes] += count
        return [_line(sizes, count) for sizes, count in by_sizes.items()], unread

    def _sizes(self, shapes: Shapes) -> tuple[tuple[str, int], ...] | None:
        """Read the symbols; None where shapes contradict the signature or each other, or nothing is asked for."""
        sizes: dict[str, int] = {}
        for spec, shape in zip(self._specs, shapes, strict=True):
            dims = spec.dims or ()
            if shape is None or len(shape) != len(dims):
                return None
            for dim, size in zip(dims, shape, strict=True):
                if (sizes.setdefault(dim, size) if isinstance(dim, str) else dim) != size:
                    return None
        return tuple(sorted(sizes.items())) if all(sizes.values()) else None

    def recorded(self, run: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
        """Return ``run`` with every request counted first."""
        note = self.note

        def run_and_note(feeds: Any) -> dict[str, np.ndarray]:
            note(feeds)
            return run(feeds)

        return run_and_note

    def _append(self, text: str) -> None:
        """Append whole lines under the file's lock; cut off what a killed writer left of a line first."""
        with locked(self.path) as fd:
            size = cut_to_whole_lines(fd)
            if size <= self._merged_bytes + MERGE_BYTES:
                write_all(fd, text.encode())
                return
            _merge(self.path, fd)
        with locked(self.path) as fd:
            self._merged_bytes = cut_to_whole_lines(fd)
            if self._merged_bytes > MAX_FILE_BYTES:
                raise OSError(0, f"it has {self._merged_bytes} bytes, {MAX_FILE_BYTES} are the most")
            write_all(fd, text.encode())

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(message, TrafficWarning, stacklevel=2)


def _telling_inputs(signature: Signature) -> tuple[TensorSpec, ...]:
    """The fewest inputs whose shapes tell every symbol, looked for one by one; most models need one."""
    missing = set(signature.symbols)
    found: list[TensorSpec] = []
    while missing:
        best = max(signature.inputs, key=lambda spec: len(missing & set(spec.symbols)))
        if not missing & set(best.symbols):
            break
        found.append(best)
        missing -= set(best.symbols)
    return tuple(found)


def _line(sizes: tuple[tuple[str, int], ...], count: int) -> str:
    return json.dumps({"sizes": dict(sizes), "count": count}, separators=(",", ":")) + "\n"


def _entry(line: bytes) -> tuple[tuple[tuple[str, int], ...], int] | None:
    """Read a line that ``_line`` wrote; None for any other."""
    try:
        entry = json.loads(line)
        sizes = tuple((str(symbol), int(size)) for symbol, size in entry["sizes"].items())
        count = entry["count"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return (sizes, count) if entry.keys() == {"sizes", "count"} and isinstance(count, int) else None


def _merge(path: Path, fd: int) -> None:
    """Replace the file by one with a line for each size; leave it as it is when it holds lines that are not ours."""
    counts: Counter[tuple[tuple[str, int], ...]] = Counter()
    with os.fdopen(os.dup(fd), "rb") as stream:
        stream.seek(0)
        for line in stream:
            entry = _entry(line)
            if entry is None:
                return
            counts[entry[0]] += entry[1]
    place = Path(os.path.realpath(path))  # a link to it stays one
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
    try:
        with os.fdopen(handle, "w") as new:
            new.writelines(_line(sizes, count) for sizes, count in sorted(counts.items()))
            os.fchmod(new.fileno(), os.fstat(fd).st_mode & 0o777)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
