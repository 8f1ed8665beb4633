"""Pages and other files that a command writes beside its results."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from trtc.engines.files import host_error, write_file
from trtc.profiles import HostError
from trtc.tools.extras import install
from trtc.tools.places import require_file_place

if TYPE_CHECKING:
    from pathlib import Path


PLOTS = "pip install 'trtc[report]'"


def require_page(path: Path | None) -> None:
    """Refuse ``--html`` where the page cannot be drawn or written; None is no page.

    Raises:
        HostError: when matplotlib is not installed, or rights are missing.
        UsageError: as ``require_file_place``.
    """
    require_file_place(path, "--html")
    if path is not None and find_spec("matplotlib") is None:
        raise HostError(f"--html needs matplotlib, which is not installed; {install(PLOTS)}")


def write_text(path: Path, data: bytes) -> None:
    """Replace a file in one step.

    Raises:
        HostError: when it cannot be written.
    """
    try:
        write_file(path, data)
    except OSError as error:
        raise host_error(error, path, len(data)) from error
