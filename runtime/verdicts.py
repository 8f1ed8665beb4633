"""Which engines of a bundle this host can run, and why not the others. Nothing is opened to find out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from trtc.engines.registry import BACKENDS
from trtc.profiles import HostError, UsageError, unknown_name

if TYPE_CHECKING:
    from trtc.engines.host import Host
    from trtc.engines.manifest import EngineRecord, Manifest


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one engine fits this host.

    Attributes:
        engine: name of the engine.
        fits: whether it can be loaded.
        reason: why, or why not and what to do.
    """

    engine: str
    fits: bool
    reason: str


def judge(record: EngineRecord, host: Host) -> Verdict:
    """Compare what an engine needs with what the host has."""
    needs = record.requirements
    backend = next((b for b in BACKENDS if b.name == record.backend), None)
    if backend is None:
        return Verdict(record.name, fits=False, reason=f"this version of trtc has no backend {record.backend!r}")
    if needs.system and needs.system != host.system:
        return _no(record, f"it was built for {needs.system}, this host runs {host.system}; build it again here")
    if needs.architecture and needs.architecture != host.architecture:
        reason = f"it was built for {needs.architecture}, this host is {host.architecture}; build it again here"
        return _no(record, reason)
    if not backend.installed:
        return _no(record, f"{backend.needs} is not installed: {backend.install}")
    if needs.library and (problem := _library_problem(needs.library, needs.library_version)):
        return _no(record, problem)
    if missing := [f for f in needs.cpu_features if f not in host.cpu_features]:
        return _no(record, f"it uses {', '.join(missing)}, which this processor lacks; rebuild the bundle on this host")
    if not record.verified and backend.computes:
        return _no(record, "it was never compared with its model; run `trtc verify` on a host that can run it")
    return Verdict(record.name, fits=True, reason=f"fits: {record.target} with {needs.library or 'no library'}".strip())


def choose(manifest: Manifest, host: Host, engine: str = "auto") -> tuple[EngineRecord, tuple[Verdict, ...]]:
    """Choose the engine to load: the one that was asked for, or the first that fits.

    Args:
        manifest: of the bundle; its engines stand in order of preference.
        host: this host.
        engine: a name, or ``auto``. ``auto`` never takes the null backend when the bundle has another.

    Raises:
        UsageError: for a name that the bundle does not have.
        HostError: when the asked one, or none at all, fits; it lists every verdict.
    """
    names = [record.name for record in manifest.engines]
    if engine != "auto" and engine not in names:
        raise UsageError(unknown_name("engine", engine, names))
    verdicts = tuple(judge(record, host) for record in manifest.engines)
    computing = [r for r in manifest.engines if r.backend != "null"] or list(manifest.engines)
    for record, verdict in zip(manifest.engines, verdicts, strict=True):
        if verdict.fits and (record.name == engine or (engine == "auto" and record in computing)):
            return record, verdicts
    listed = "; ".join(f"{v.engine}: {v.reason}" for v in verdicts if engine in ("auto", v.engine))
    raise HostError(f"no engine of this bundle can run here ({listed or 'it holds none'})")


def _no(record: EngineRecord, reason: str) -> Verdict:
    return Verdict(record.name, fits=False, reason=reason)


def _library_problem(library: str, wanted: str) -> str:
    """Compare the installed version with the one that built the engine; major and minor must agree."""
    for package in (library, f"{library}-gpu"):
        try:
            found = version(package)
        except PackageNotFoundError:
            continue
        if not wanted or found.split(".")[:2] == wanted.split(".")[:2]:
            return ""
        return (
            f"it was built with {library} {wanted}, this host has {found}; "
            f"install {library}=={wanted}, or rebuild the bundle here"
        )
    return f"{library} is not installed"
