"""Whether a bundle can fit where it is to be written, asked before minutes are spent on its engines."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from trtc.engines.manifest_file import MANIFEST
from trtc.engines.memory import bytes_text
from trtc.engines.registry import backend_named
from trtc.engines.target import parse_targets
from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def require_bundle_space(output: Path, model_bytes: int, targets: Sequence[str]) -> None:
    """Refuse a place that has not even room for the model, which each bundle with an engine holds in some form.

    A bundle that is replaced is left out: what it shares with the new one takes no room.

    Args:
        output: of the bundle.
        model_bytes: of the model with its external data.
        targets: as they were asked for.

    Raises:
        HostError: with what is free and what is needed.
    """
    if (output / MANIFEST).exists() or not any(
        backend_named(target.backend).computes for target in parse_targets(targets)
    ):
        return
    folder = next(folder for folder in output.absolute().parents if folder.exists())
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:  # a file system that does not tell
        return
    if free_bytes < model_bytes:
        raise HostError(
            f"{output}: {folder} has {bytes_text(free_bytes)} free, a bundle of this model takes "
            f"{bytes_text(model_bytes)} or more; "
            "free space, or choose another folder with -o"
        )
