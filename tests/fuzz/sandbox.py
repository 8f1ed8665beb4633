"""Runs cases in forked children with limits on memory and processor time; says which case ended a child.

A child reports each case with one byte in a pipe, so that the parent knows where it died. Opens, renames and the
like outside of the folders that a target names are findings: an audit hook of the interpreter sees what Python code
does. Native code is watched with inotify on the folder of secrets that the target keeps beside those folders.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

MEMORY_BYTES = 2 * 2**30
CPU_S = 20
SILENCE_S = 300
"""Seconds of the clock without a finished case, after which a child counts as hanging; generous on a busy machine."""
BATCH, WATCHED_BATCH = 2000, 50
FINDING = "finding"

_WATCHED = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
_LINKING = {"os.link", "os.symlink"}
_OF_THE_SYSTEM = ("/proc/", "/sys/", "/dev/")


class Target(Protocol):
    """What is fuzzed.

    Attributes:
        name: on the command line.
        outcomes: what a case can end in, apart from a finding.
        folders: where cases may read and write; None does not look.
        secrets: a folder that nothing may open.
    """

    name: str
    outcomes: tuple[str, ...]
    folders: tuple[Path, ...] | None
    secrets: Path | None

    def case(self, number: int) -> Any:
        """Make a case: the same for the same number."""

    def run(self, case: Any) -> str:
        """Run it; return an outcome, and raise for a finding."""

    def saved(self, case: Any) -> bytes:
        """Write a case down for people."""


@dataclass
class Tally:
    """What a run of cases came to."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Path] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return sum(self.outcomes.values())


def run_cases(target: Target, numbers: Iterable[int], findings: Path) -> Tally:
    """Run cases; a child that dies costs the case that it died at, the others go on in the next child."""
    tally = Tally()
    todo = list(numbers)
    alarm = Alarm(target.secrets) if target.secrets is not None else None
    alone = 0
    while todo:
        batch = todo[: 1 if alone else BATCH if alarm is None else WATCHED_BATCH]
        alone = max(0, alone - 1)
        before = Counter(tally.outcomes)
        done, ending = _run_batch(target, batch, findings, tally)
        if alarm is not None and alarm.rang():
            if len(batch) > 1:
                tally.outcomes, alone = before, len(batch)  # once more, one by one, to see which case it was
                continue
            ending = ending or "a file in the folder of secrets was opened"
            tally.outcomes, done = before, 0
        if ending:
            tally.outcomes[FINDING] += 1
            tally.findings.append(save(target, batch[done], findings, ending))
            done += 1
        todo = todo[done:]
    return tally


class Alarm:
    """Tells whether anything in a folder was opened, changed, made or removed since the last question."""

    _EVENTS = 0x00000001 | 0x00000002 | 0x00000020 | 0x00000100 | 0x00000200 | 0x000000C0
    """IN_ACCESS, IN_MODIFY, IN_OPEN, IN_CREATE, IN_DELETE, IN_MOVE of inotify(7)."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for watched in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(watched), self._EVENTS) < 0:
                raise OSError(ctypes.get_errno(), "inotify does not work here", str(watched))
        next(path for path in folder.rglob("*") if path.is_file()).read_bytes()
        if not self.rang():
            raise OSError(0, "inotify does not see that a file is read", str(folder))

    def rang(self) -> bool:
        """Read and forget what happened."""
        try:
            data = os.read(self._fd, 2**16)
        except BlockingIOError:
            return False
        return bool(data)


def save(target: Target, number: int, findings: Path, what: str) -> Path:
    """Keep a finding: what happened, and the case that it happened with."""
    findings.mkdir(parents=True, exist_ok=True)
    path = findings / f"{target.name}-{number}.txt"
    path.write_text(f"target {target.name}, case {number}\n\n{what}\n", encoding="utf-8", errors="backslashreplace")
    path.with_suffix(".case").write_bytes(target.saved(target.case(number)))
    return path


def _run_batch(target: Target, batch: list[int], findings: Path, tally: Tally) -> tuple[int, str]:
    """Run a batch in a child; return how many cases ended, and what ended the child early."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os._exit(_child(target, batch, findings, writing))
    os.close(writing)
    reported = bytearray()
    hung = False
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            if not select.select([pipe], [], [], SILENCE_S)[0]:
                os.kill(child, signal.SIGKILL)
                hung = True
            data = pipe.read(65536)
            if not data:
                break
            reported += data
    _, status = os.waitpid(child, 0)
    known = (*target.outcomes, FINDING)
    for number, code in zip(batch, reported, strict=False):
        tally.outcomes[known[code]] += 1
        if known[code] == FINDING:
            tally.findings.append(findings / f"{target.name}-{number}.txt")
    if len(reported) == len(batch) and status == 0:
        return len(batch), ""
    if hung:
        return len(reported), f"nothing happened for {SILENCE_S} seconds"
    code = os.waitstatus_to_exitcode(status)
    return len(reported), f"the process ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"


def _child(target: Target, batch: list[int], findings: Path, pipe: int) -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_address_space_bytes() + MEMORY_BYTES, resource.RLIM_INFINITY))
    outside = _watch(target.folders) if target.folders is not None else []
    for number in batch:
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft_s = int(used.ru_utime + used.ru_stime) + CPU_S
        resource.setrlimit(resource.RLIMIT_CPU, (soft_s, resource.RLIM_INFINITY))
        try:
            code = target.outcomes.index(target.run(target.case(number)))
            if outside:
                raise OutsideError(f"touched outside of its folders: {outside[:5]}")  # noqa: TRY301 (one place saves)
        except BaseException:  # noqa: BLE001 (whatever it is, it is a finding)
            code = len(target.outcomes)
            save(target, number, findings, traceback.format_exc())
            outside.clear()
        os.write(pipe, bytes([code]))
    return 0


class OutsideError(Exception):
    """A case touched something that it must not."""


def _address_space_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _watch(folders: tuple[Path, ...]) -> list[str]:
    """Note every path that is touched outside of some folders; what Python itself imports is not."""
    allowed = tuple(f"{folder}/" for folder in map(os.path.realpath, (*folders, sys.prefix, sys.base_prefix, *_code())))
    seen: list[str] = []

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event not in _WATCHED:
            return
        for path in args[:2] if event == "os.rename" else args[1:2] if event in _LINKING else args[:1]:
            if isinstance(path, str | bytes | os.PathLike):
                plain = os.fsdecode(path)
                if not plain.startswith("/") and ".." not in plain.split("/"):
                    continue  # below an open folder or the current one, which is empty
                text = os.path.abspath(plain)  # noqa: PTH100 (resolve would open folders)
                if not f"{text}/".startswith(allowed) and not text.startswith(_OF_THE_SYSTEM):
                    seen.append(f"{event} {text}")

    sys.addaudithook(hook)
    return seen


def _code() -> list[str]:
    """Name the folders that modules of this process came from."""
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    packages = {Path(file).parent for name, file in zip(list(sys.modules), files, strict=True) if name[:5] == "trtc."}
    return [*sys.path[1:], *(str(folder) for folder in packages)]
