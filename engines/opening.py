"""What a backend's ``load.py`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.value import Value

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.manifest import EngineRecord
    from trtc.engines.signature import Signature
    from trtc.profiles import Ladder


def plugins_refused(record: EngineRecord) -> str:
    """Say why an engine with plug-ins is not opened, for a caller who did not allow them."""
    digests = ", ".join(file.sha256 for file in record.files if file.path in record.plugins)
    return (
        f"it brings libraries of plug-ins (SHA-256 {digests}), which are code that would run in this process; "
        "if you trust who built the bundle, allow them: load(..., allow_plugins=True), or --allow-plugins"
    )


class Opening(Value, frozen=True, kw_only=True):
    """One engine to open; its files were checked before.

    Attributes:
        files: file by its path in the manifest.
        record: the engine's record.
        signature: of the bundle.
        ladder: of the bundle: the profiles that the engine was built with, in this order.
        threads: that one call may use; a device ignores it.
        spinning: let idle threads wait actively for more work: faster for a lone call, a waste of processors where
            calls run at once on more threads than there are processors.
        device: the accelerator, as an index or a UUID; empty for the first one that fits. A CPU engine ignores it.
        allow_plugins: the caller lets the engine's libraries of plug-ins run in this process.
    """

    files: dict[str, Path]
    record: EngineRecord
    signature: Signature
    ladder: Ladder
    threads: int = 1
    spinning: bool = True
    device: str = ""
    allow_plugins: bool = False
