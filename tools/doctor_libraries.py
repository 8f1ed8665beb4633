"""What ``trtc doctor`` finds out about libraries: which are installed, and which backends can really run."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import TYPE_CHECKING, Any

from trtc.engines.gpu import survey_gpus
from trtc.engines.registry import BACKENDS
from trtc.tools.doctor_facts import Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.engines.registry import Backend

RUNTIME_LIBRARIES = ("numpy", "msgspec", "click", "rich")
COMPILER_LIBRARIES = ("onnx", "onnx-ir", "ml-dtypes")
_IMPORT_TIMEOUT_S = 120.0
_TRY_IMPORT = (
    "import importlib, sys; m = importlib.import_module(sys.argv[1]); print(getattr(m, '__version__', 'unknown'))"
)


def library_section() -> Section:
    """Versions of the libraries that trtc itself and its compiler import."""
    found = {name: installed_version(name) for name in (*RUNTIME_LIBRARIES, *COMPILER_LIBRARIES)}
    lines = tuple((name, text or "not installed") for name, text in found.items())
    missing = [name for name in COMPILER_LIBRARIES if found[name] is None]
    hints = []
    if missing:
        hints.append(f"bundles can be run but not built: {', '.join(missing)} missing; pip install 'trtc[cpu]'")
    return Section(dict(found), lines, tuple(hints))


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def backend_section(backends: Sequence[Backend] = BACKENDS) -> Section:
    """Every backend: is its library there, and does it import on this machine."""
    facts = [backend_facts(backend) for backend in backends]
    lines = tuple((entry["name"], _backend_text(entry)) for entry in facts)
    shadowed = [backend.needs for backend in backends if backend.needs]
    return Section({"backends": facts}, lines, tuple(overlaps(shadowed, packages_distributions())))


def backend_facts(backend: Backend) -> dict[str, Any]:
    """Look at one backend. Its library is imported in a process of its own: one that crashes takes nothing along."""
    found, detail = (None, "needs no library") if not backend.needs else (None, "not installed")
    usable = not backend.needs
    if backend.needs and backend.installed:
        found, detail = try_import(backend.needs)
        usable = found is not None
        if usable and backend.device and not survey_gpus().gpus:
            usable, detail = False, f"{detail}; it builds here, and runs where there is a GPU"
    return {
        "name": backend.name,
        "target": backend.target,
        "computes": backend.computes,
        "installed": backend.installed,
        "usable": usable,
        "version": found,
        "detail": detail,
        "install": backend.install,
    }


def try_import(module: str) -> tuple[str | None, str]:
    """Import a module in a fresh interpreter.

    Returns:
        Its version, or None where it cannot be imported, and what happened in words.
    """
    # -P: a folder of the same name in the working directory must not be taken for the library.
    command = [sys.executable, "-P", "-c", _TRY_IMPORT, module]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_IMPORT_TIMEOUT_S, check=False)  # noqa: S603 (fixed words)
    except subprocess.TimeoutExpired:
        return None, f"import did not end within {_IMPORT_TIMEOUT_S:g} s"
    if done.returncode < 0:
        return (
            None,
            f"import crashed with {_signal_name(-done.returncode)}; this build does not fit the processor or OS",
        )
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["without a word"]
        return None, f"import failed: {words[-1]}"
    return done.stdout.split()[-1], "can be imported"


def overlaps(modules: Sequence[str], distributions: Mapping[str, Sequence[str]]) -> list[str]:
    """Name modules that several distributions installed over each other: which files won is chance."""
    hints = []
    for module in modules:
        names = sorted(set(distributions.get(module, ())))
        if len(names) > 1:
            both = " and ".join(names)
            hints.append(f"{both} overwrite each other's files: pip uninstall {' '.join(names)}, then install one")
    return hints


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _backend_text(entry: dict[str, Any]) -> str:
    text = f"{entry['version']} " if entry["version"] else ""
    text += str(entry["detail"])
    text += "" if entry["computes"] else "; computes nothing, for tests of everything above it"
    return text if entry["version"] or entry["usable"] else f"{text}; {entry['install']}"
