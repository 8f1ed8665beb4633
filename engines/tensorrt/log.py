"""The library's log, kept as values: most of what TensorRT ignores, it says here and nowhere else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trtc.engines.tensorrt.job import LogLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NO_DRIVER = "CUDA driver version is insufficient"
_ECHO = ("While parsing node number", "--- Begin node ---", "--- End node ---", "Node name:")
_UNUSED = re.compile(
    r"Unused Input: (.*)|\[RemoveDeadLayers\] Input Tensor (.*) is unused or used only at compile-time"
)
_UNSUPPORTED = re.compile(r"(\w+)\(?\)? is unsupported in ")
_ACTIVATION = re.compile(r"Total Activation Memory: (\d+) bytes")
_PERSISTENT = re.compile(r"Total Device Persistent Memory: (\d+) bytes")
_WEIGHTS = re.compile(r"Total Weights Memory: (\d+) bytes")


def new_logger(library: Any) -> Any:
    """Return a logger of the library that keeps what it says in ``lines``, all but its thousands of verbose lines.

    Args:
        library: the module; its ``ILogger`` is the base.
    """

    class KeptLog(library.ILogger):  # type: ignore[misc]  # a class of the library, known at run time only
        """Keeps messages; the library may call ``log`` from any of its threads."""

        def __init__(self) -> None:
            library.ILogger.__init__(self)
            self.lines: list[LogLine] = []

        def log(self, severity: Any, text: str) -> None:
            """Keep one message."""
            if severity != library.ILogger.VERBOSE:
                self.lines.append(LogLine(severity.name, text))

    return KeptLog()


def error_texts(lines: Iterable[LogLine]) -> tuple[str, ...]:
    """Return the messages that say what went wrong, without the echo of nodes and the missing driver's noise."""
    texts = [line.text.strip() for line in lines if line.severity in ("ERROR", "INTERNAL_ERROR")]
    telling = [t for t in texts if not any(word in t.splitlines()[0] for word in _ECHO)]
    caused = [t for t in telling if _NO_DRIVER not in t]
    return tuple(dict.fromkeys(caused or telling))


def unused_inputs(lines: Iterable[LogLine]) -> tuple[str, ...]:
    """Return the inputs of the model whose values the engine does not use, as the library says while it builds."""
    found = [match[1] or match[2] for line in lines if (match := _UNUSED.match(line.text))]
    return tuple(dict.fromkeys(name.strip() for name in found))


def unsupported_settings(lines: Iterable[LogLine]) -> tuple[str, ...]:
    """Return the settings that the library took and says it does not have."""
    return tuple(line.text for line in lines if line.severity == "WARNING" and _UNSUPPORTED.search(line.text))


def scratch_bytes(lines: Sequence[LogLine], profiles: int) -> tuple[int, ...]:
    """Return the device memory that a context of each profile needs, as the builder counted it.

    Returns:
        In the order of the profiles; empty where the log does not tell it for each of them.
    """
    found = _numbers(_ACTIVATION, lines)
    kept = _numbers(_PERSISTENT, lines)
    if len(found) != profiles:
        return ()
    return tuple(a + p for a, p in zip(found, kept if len(kept) == profiles else [0] * profiles, strict=True))


def weights_bytes(lines: Sequence[LogLine]) -> int | None:
    """Return the device memory of the engine's weights, as the builder counted it."""
    found = _numbers(_WEIGHTS, lines)
    return found[-1] if found else None


def _numbers(pattern: re.Pattern[str], lines: Iterable[LogLine]) -> list[int]:
    return [int(found[1]) for line in lines if (found := pattern.search(line.text))]
