"""The one place where failures of the running half (TensorRT's runtime, ``cuda.core``) become ours."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trtc.engines.errors import EngineError
from trtc.engines.tensorrt.log import new_logger
from trtc.profiles import TrtcError

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT_LINES = 64
_TOLD_LINES = 4
_SERIOUS = frozenset(["ERROR", "INTERNAL_ERROR"])


@contextmanager
def failures(doing: str) -> Iterator[None]:
    """Turn whatever is raised inside into an EngineError that says what was being done.

    The classes of both libraries are not public, or builtins; so every exception that is not ours counts.
    """
    try:
        yield
    except TrtcError:
        raise
    except Exception as error:
        raise failure(error, doing) from error


def failure(error: Exception, doing: str) -> EngineError:
    """Return our error for one of the libraries'."""
    return EngineError(f"{doing}: {type(error).__name__}: {error}")


class RuntimeLog:
    """What TensorRT said lately. Most of its calls fail by returning nothing, and explain themselves only here.

    Attributes:
        logger: to be handed to the library; it must outlive everything made with it.
    """

    def __init__(self, trt: Any) -> None:
        self.logger = new_logger(trt)
        self.logger.lines = deque(maxlen=_KEPT_LINES)

    def refused(self, doing: str) -> EngineError:
        """Return the error for a call that the library refused, with its last serious messages."""
        said = [line.text for line in self.logger.lines if line.severity in _SERIOUS][-_TOLD_LINES:]
        return EngineError(
            f"{doing}: TensorRT refuses" + (f": {'; '.join(said)}" if said else ", and does not say why")
        )
