"""NVIDIA GPUs as ``nvidia-smi`` and the kernel tell, where the management library cannot be asked from here."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_FIELDS = ("index", "name", "compute_cap", "memory.total", "driver_version", "uuid")
_TIMEOUT_S = 30.0
_MIB = 2**20


def parse_smi(text: str) -> tuple[str | None, list[dict[str, Any]]]:
    """Read what ``nvidia-smi --query-gpu`` wrote as CSV: the driver's version and the GPUs.

    Raises:
        ValueError: a line does not have the fields that were asked for.
    """
    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines() if line.strip()]
    rows = [[] if row == ["No devices were found"] else row for row in rows]
    gpus, driver = [], None
    for row in filter(None, rows):
        if len(row) != len(_FIELDS):
            raise ValueError(f"nvidia-smi wrote {len(row)} fields, {len(_FIELDS)} were asked for: {', '.join(row)}")
        index, name, capability, memory_mib, driver, uuid = (None if word.startswith("[") else word for word in row)
        gpus.append(
            {
                "index": int(index) if index else None,
                "name": name,
                "compute_capability": capability,
                "memory_bytes": int(memory_mib) * _MIB if memory_mib else None,
                "uuid": uuid,
            }
        )
    return driver, gpus


def ask_smi(smi: str) -> tuple[str | None, list[dict[str, Any]]]:
    """Ask ``nvidia-smi`` for the driver's version and the GPUs; its own words are the error when it fails.

    Raises:
        OSError, ValueError, subprocess.SubprocessError: it fails, hangs, or writes what it does not document.
    """
    command = [smi, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603 (fixed words)
    words = (done.stdout + done.stderr).strip()
    if done.returncode and "No devices were found" not in words:
        raise OSError(f"nvidia-smi exited {done.returncode}: {' '.join(words.split()) or 'without a word'}")
    return parse_smi(done.stdout)


def driver_files(root: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """Return what the driver shows in ``proc``: its version and the GPUs."""
    version = root / "proc/driver/nvidia/version"
    if not version.exists():
        return None, []
    gpus = []
    for index, file in enumerate(sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))):
        pairs = (line.partition(":") for line in file.read_text().splitlines())
        found = {name.strip(): value.strip() for name, _, value in pairs}
        more = {"compute_capability": None, "memory_bytes": None, "uuid": found.get("GPU UUID")}
        gpus.append({"index": index, "name": found.get("Model", "unknown model"), **more})
    return version.read_text().splitlines()[0], gpus
