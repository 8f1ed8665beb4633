"""Where the inputs lie that ``trtc exec --record`` keeps beside its record of traffic."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_DIGITS = 16
"""Digits of a model's digest that name its folder."""


def samples_folder(record: str | os.PathLike[str], file_sha256: str) -> Path:
    """Return the folder of one model's inputs.

    Args:
        record: path of the record.
        file_sha256: digest of the model file.
    """
    return Path(f"{os.fspath(record)}.samples") / file_sha256[:FOLDER_DIGITS]
