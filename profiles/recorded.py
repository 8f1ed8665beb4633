"""What ``trtc exec`` and the programs that it starts agree on."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing takes 2 ms, and programs wait for this module
if TYPE_CHECKING:
    from pathlib import Path

EXEC_VARIABLE = "TRTC_EXEC"
"""Of the environment: settings as JSON text."""
DEFAULT_SAMPLES = 32
"""Inputs that are kept for each model."""
FOLDER_DIGITS = 16
"""Digits of a model's digest that name its folder."""


def samples_folder(record: str | os.PathLike[str], file_sha256: str) -> Path:
    """Return the folder of one model's inputs.

    Args:
        record: path of the record.
        file_sha256: digest of the model file.
    """
    from pathlib import Path

    return Path(f"{os.fspath(record)}.samples") / file_sha256[:FOLDER_DIGITS]
