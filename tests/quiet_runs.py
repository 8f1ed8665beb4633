"""Options of a run that say nothing on standard error."""

from __future__ import annotations

from typing import Any

import onnxruntime


def quiet(**settings: Any) -> onnxruntime.RunOptions:
    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    for name, value in settings.items():
        setattr(options, name, value)
    return options


def terminated() -> onnxruntime.RunOptions:
    return quiet(terminate=True)
