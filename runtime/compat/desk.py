"""The one place of a process that knows its bundles, its models and what is to be written about them, and when."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trtc.profiles.recorded import samples_folder
from trtc.runtime.compat.counts import ModelCounts
from trtc.runtime.compat.digest import file_digest_of
from trtc.runtime.compat.journal import Record, Report

if TYPE_CHECKING:
    from trtc.runtime.compat.samples import Sampler
    from trtc.runtime.compat.settings import Settings

FLUSH_S = 2.0
"""Counts wait at most this long for the next call to write them; that much a kill can lose."""


class Desk:
    """Counts for all sessions of a process, written every few seconds and when it ends. Thread-safe.

    Args:
        settings: what to do.

    Attributes:
        bundles: that may stand in for models.
    """

    def __init__(self, settings: Settings) -> None:
        self.bundles = settings.bundles
        self._settings = settings
        self._record = Record(Path(settings.record)) if settings.record else None
        self._report = Report(Path(settings.report)) if settings.report else None
        self._models: dict[str, ModelCounts] = {}
        self._lock = Lock()
        self._writing = Lock()
        self._told: set[str] = set()
        self._registered = False
        if self._record is not None or self._report is not None:
            self.tell({"process": os.getpid(), "python": sys.executable})
            atexit.register(self.write, wait=True)
            os.register_at_fork(before=self._before_fork, after_in_child=self._after_fork)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do at all."""
        return not self.bundles and self._record is None

    def model(self, model: object) -> ModelCounts | None:
        """Return the counts of a model given as path or bytes; None for what is no model file."""
        digest = "" if self.idle else file_digest_of(model)
        if not digest:
            return None
        name = "model in memory" if isinstance(model, bytes) else Path(os.fsdecode(model)).name  # type: ignore[arg-type]
        with self._lock:
            known = self._models.get(digest)
            if known is None:
                known = self._models[digest] = ModelCounts(digest, name, self._sampler(digest), self.write)
        return known

    def tell(self, entry: dict[str, Any]) -> None:
        """Add an entry to the report."""
        if self._report is not None:
            self._report.append([entry])

    def write(self, *, wait: bool = False) -> None:
        """Write what was counted. Without ``wait``, leave that to another thread that is at it already."""
        if (self._record is None and self._report is None) or not self._writing.acquire(blocking=wait):
            return
        try:
            with self._lock:
                models = list(self._models.values())
            due_s = perf_counter() + FLUSH_S
            record: list[dict[str, Any]] = []
            report: list[dict[str, Any]] = []
            for model in models:
                model.due_s = due_s
                calls, others = model.drain()
                record += _recorded(calls, timed=not model.served)
                report += [{key: value for key, value in entry.items() if key != "times_s"} for entry in calls]
                report += others
                record += self._ranges(model)
            if self._record is not None and record:
                try:
                    self._record.append(record)
                except OSError as error:
                    self._once(f"{self._settings.record}: traffic cannot be written there: {error.strerror or error}")
            if self._report is not None and report:
                self._report.append(report)
        finally:
            self._writing.release()

    def _sampler(self, digest: str) -> Sampler | None:
        """Make what takes feeds of a model; None where no values are recorded."""
        if self._record is None or not self._settings.values:
            return None
        from trtc.runtime.compat.samples import Sampler

        return Sampler(samples_folder(self._settings.record, digest), self._settings.samples)

    def _ranges(self, model: ModelCounts) -> list[dict[str, Any]]:
        if model.sampler is None:
            return []
        ranges, sampled = model.sampler.drain()
        if model.sampler.failure:
            self._once(model.sampler.failure)
        if not sampled:
            return []
        return [{"model": model.digest, "name": model.name, "ranges": ranges, "sampled": sampled}]

    def _once(self, note: str) -> None:
        if note not in self._told:
            self._told.add(note)
            self.tell({"note": note})

    def _before_fork(self) -> None:
        # Children of multiprocessing end without running exit functions; they run these, set up after the fork.
        util = sys.modules.get("multiprocessing.util")
        if util is not None and not self._registered:
            self._registered = True
            util.register_after_fork(self, Desk._end_with_multiprocessing)

    def _end_with_multiprocessing(self) -> None:
        sys.modules["multiprocessing.util"].Finalize(None, self.write, kwargs={"wait": True}, exitpriority=0)

    def _after_fork(self) -> None:
        self._lock = Lock()
        self._writing = Lock()
        for model in self._models.values():
            model.forget()
            if model.sampler is not None:
                model.sampler = self._sampler(model.digest)


def _recorded(calls: list[dict[str, Any]], *, timed: bool) -> list[dict[str, Any]]:
    """Return counted calls as entries of the record, one for equal shapes, whoever answered.

    Times beside a bundle are none of plain ONNX Runtime.
    """
    joined: dict[str, dict[str, Any]] = {}
    for entry in calls:
        kept = {key: value for key, value in entry.items() if key not in {"squares", "by_bundle"}}
        if not timed:
            kept |= {"seconds": 0.0, "timed": 0}
        same = joined.setdefault(str(kept["inputs"]), kept)
        if same is not kept:
            same["count"] += kept["count"]
            same["times_s"] = sorted(same["times_s"] + kept["times_s"])
    return list(joined.values())
