"""Loading a bundle: choose the engine, check its files, open it, reserve its memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.bundle import open_engine
from trtc.engines.host import this_host
from trtc.engines.opening import Opening
from trtc.engines.registry import backend_named
from trtc.profiles import HostError, UsageError
from trtc.runtime.arena import Arena, default_arena
from trtc.runtime.ending import watch
from trtc.runtime.fork import remember
from trtc.runtime.session import Loaded, Session
from trtc.runtime.verdicts import choose

if TYPE_CHECKING:
    from trtc.engines.manifest import EngineRecord, Execution, Manifest


def load(  # noqa: PLR0913 (the entry of the library: each is one keyword)
    path: str | os.PathLike[str],
    *,
    engine: str = "auto",
    slots: int | None = None,
    threads: int | None = None,
    arena: Arena | None = None,
    max_memory_bytes: int | None = None,
    verify: bool = True,
    spinning: bool | None = None,
) -> Session:
    """Load a bundle.

    Args:
        path: the ``NAME.trtc`` folder.
        engine: name of an engine of the bundle, or ``auto`` for the first that fits this host.
        slots: calls that may run at once; None takes what the build measured.
        threads: that one call may use; None takes what the build measured, within what this process is allowed.
        arena: memory to share with other sessions; None takes the one of this process.
        max_memory_bytes: budget for planned memory, in an arena of its own; not together with ``arena``.
        verify: False skips the digests (sizes are still checked): only for a bundle that nobody else can write.
        spinning: let idle threads wait actively for more work; None does where no processor is asked for twice.

    Raises:
        UsageError: for a missing path, an unknown engine, or counts that are not positive.
        BundleError: for a bundle that is truncated, altered or from another version.
        HostError: when no engine fits this host, or its memory does not fit into the budget.
        EngineError: when the engine's library refuses it.
    """
    if arena is not None and max_memory_bytes is not None:
        raise UsageError(
            "give either arena or max_memory_bytes; an arena has a budget of its own: Arena(max_bytes=...)"
        )
    for name, count in (("slots", slots), ("threads", threads)):
        if count is not None and count < 1:
            raise UsageError(f"{name}={count}; give 1 or more, or leave it out for what the build measured")
    if max_memory_bytes is not None and max_memory_bytes < 0:
        raise UsageError(f"max_memory_bytes={max_memory_bytes}; give bytes, or leave it out for no limit")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise HostError(
            "this Python runs without its interpreter lock, on which slots and borrowed views rely; "
            "use a build of Python with it, or set PYTHON_GIL=1"
        )
    folder = Path(path)
    host = this_host()

    def pick(manifest: Manifest) -> EngineRecord:
        return choose(manifest, host, engine)[0]

    with open_engine(folder, pick, verify=verify) as reader:
        execution = _execution(reader.record.execution or reader.manifest.execution, host.threads, slots, threads)
        opened = backend_named(reader.record.backend).load(
            Opening(
                files=reader.files,
                record=reader.record,
                signature=reader.manifest.signature,
                ladder=reader.manifest.ladder,
                threads=execution.threads,
                spinning=execution.slots * execution.threads <= host.threads if spinning is None else spinning,
            )
        )
    options: dict[str, Any] = {
        "engine": engine,
        "slots": slots,
        "threads": threads,
        "verify": verify,
        "spinning": spinning,
    }
    memory = arena or (default_arena() if max_memory_bytes is None else Arena(max_memory_bytes))
    try:
        session = Session(
            Loaded(
                path=os.fspath(folder.resolve()),
                options=options | ({"max_memory_bytes": max_memory_bytes} if max_memory_bytes is not None else {}),
                manifest=reader.manifest,
                record=reader.record,
                verdicts=choose(reader.manifest, host, engine)[1],
                execution=execution,
                engine=opened,
                arena=memory,
            )
        )
    except BaseException:
        opened.close()
        raise
    remember(session)
    watch(session)
    return session


def load_again(path: str, options: dict[str, Any]) -> Session:
    """Load what a pickled session was loaded from."""
    return load(path, **options)


def _execution(planned: Execution, allowed: int, slots: int | None, threads: int | None) -> Execution:
    """Settle how many calls run at once, and with how many threads each, on this host."""
    at_once = slots or min(planned.slots or allowed, allowed)
    each = threads or min(planned.threads or max(1, allowed // at_once), allowed)
    return msgspec.structs.replace(planned, slots=at_once, threads=each)
