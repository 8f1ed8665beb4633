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
from trtc.profiles import HostError, Ladder, UsageError, unknown_name
from trtc.runtime.arena import Arena, default_arena
from trtc.runtime.choice import Choice, Wish, choose
from trtc.runtime.ending import watch
from trtc.runtime.fork import remember
from trtc.runtime.session import Loaded, Session

if TYPE_CHECKING:
    from trtc.engines.manifest import EngineRecord, Execution, Manifest, Mode


def load(  # noqa: PLR0913 (the entry of the library: each is one keyword)
    path: str | os.PathLike[str],
    *,
    device: str | int | None = None,
    engine: str = "auto",
    fallback: str | None = None,
    profile: str | None = None,
    mode: Mode | None = None,
    slots: int | None = None,
    threads: int | None = None,
    arena: Arena | None = None,
    max_memory_bytes: int | None = None,
    verify: bool = True,
    allow_plugins: bool = False,
    spinning: bool | None = None,
) -> Session:
    """Load a bundle.

    Args:
        path: the ``NAME.trtc`` folder.
        device: the GPU to run on, by index or UUID (also of a MIG instance); ``cpu`` for none; None for what fits.
        engine: name of an engine of the bundle, or ``auto``: the first engine for a GPU that fits this host, else the
            first of the others.
        fallback: ``cpu`` takes an engine for the CPU where a GPU is there and no engine for it can be used. Without it
            that fails, so that a service does not slide onto the CPU unnoticed.
        profile: serve requests in this profile only; None picks one for each request. The session's manifest then has
            a ladder of one. For comparing and measuring.
        mode: ``exact`` sizes, or padded to the ``bucket``; None takes what the build chose.
        slots: calls that may run at once; None takes what the build measured.
        threads: that one call may use; None takes what the build measured, within what this process is allowed.
        arena: memory to share with other sessions; None takes the one of this process.
        max_memory_bytes: budget for planned memory, in an arena of its own; not together with ``arena``.
        verify: False skips the digests (sizes are still checked): only for a bundle that nobody else can write. The
            files of an engine with plug-ins are checked all the same.
        allow_plugins: True lets an engine's libraries of plug-ins run in this process: they are code.
        spinning: let idle threads wait actively for more work; None does where no processor is asked for twice.

    Raises:
        UsageError: for a missing path, an unknown engine, device, fallback, profile or mode, or counts that are not
            positive.
        BundleError: for a bundle that is truncated, altered or from another version.
        HostError: when no engine fits this host, or none fits the GPU that is there, or its memory does not fit into
            the budget.
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
    if mode not in (None, "exact", "bucket"):
        raise UsageError(f"mode={mode!r}; give 'exact' or 'bucket', or leave it out for what the build chose")
    folder = Path(path)
    host = this_host()
    wish = Wish(engine, "" if device is None else str(device), fallback, allow_plugins)

    chosen: list[Choice] = []

    def pick(manifest: Manifest) -> EngineRecord:
        chosen[:] = [choose(manifest, host, wish)]
        return chosen[0].record

    with open_engine(folder, pick, verify=verify) as reader:
        manifest = reader.manifest if profile is None else _narrowed(reader.manifest, profile)
        execution = _execution(reader.record.execution or reader.manifest.execution, host.threads, slots, threads)
        execution = msgspec.structs.replace(execution, mode=mode or execution.mode)
        opened = backend_named(reader.record.backend).load(
            Opening(
                files=reader.files,
                record=reader.record,
                signature=reader.manifest.signature,
                ladder=reader.manifest.ladder,
                threads=execution.threads,
                spinning=idle_threads_spin(execution, host.threads, spinning),
                device=chosen[0].device,
                allow_plugins=allow_plugins,
            )
        )
    options: dict[str, Any] = {"engine": engine, "slots": slots, "threads": threads, "verify": verify}
    options |= {"device": device, "fallback": fallback, "profile": profile, "mode": mode}
    options |= {"allow_plugins": allow_plugins, "spinning": spinning}
    memory = arena or (default_arena() if max_memory_bytes is None else Arena(max_memory_bytes))
    try:
        session = Session(
            Loaded(
                path=os.fspath(folder.resolve()),
                options=options | ({"max_memory_bytes": max_memory_bytes} if max_memory_bytes is not None else {}),
                manifest=manifest,
                record=reader.record,
                verdicts=chosen[0].verdicts,
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


def _narrowed(manifest: Manifest, profile: str) -> Manifest:
    """Keep one profile of the ladder: nothing else of what was planned or shown depends on the others."""
    ladder = manifest.ladder
    names = [p.name for p in ladder.profiles]
    if profile not in names:
        raise UsageError(unknown_name("profile", profile, names))
    i = names.index(profile)
    return msgspec.structs.replace(manifest, ladder=Ladder((ladder.profiles[i],), ladder.cost_s[i : i + 1]))


def idle_threads_spin(execution: Execution, processors: int, wish: bool | None) -> bool:  # noqa: FBT001 (as given)
    """Settle whether idle threads wait actively: where no wish says it, they do if no processor is asked for twice."""
    return execution.slots * execution.threads <= processors if wish is None else wish


def _execution(planned: Execution, allowed: int, slots: int | None, threads: int | None) -> Execution:
    """Settle how many calls run at once, and with how many threads each, on this host."""
    at_once = slots or min(planned.slots or allowed, allowed)
    each = threads or min(planned.threads or max(1, allowed // at_once), allowed)
    return msgspec.structs.replace(planned, slots=at_once, threads=each)
