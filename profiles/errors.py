"""The errors of trtc: one root, one class for each exit code of the command.

Every message says what came, what is allowed, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class TrtcError(Exception):
    """Root of every error that trtc raises on purpose.

    Attributes:
        exit_code: what the ``trtc`` command exits with when this error reaches it.
    """

    exit_code: ClassVar[int] = 1


class CheckError(TrtcError):
    """A check failed: numbers, a digest, a budget. Exit code 1."""

    exit_code = 1


class UsageError(TrtcError):
    """Wrong use: an option, a name, a file that is not there. Exit code 2."""

    exit_code = 2


class ProfileError(UsageError, ValueError):
    """Ranges, profiles or shapes that contradict themselves or the model. Exit code 2."""


class RequestError(UsageError, ValueError):
    """A request that the bundle cannot serve: names, dtypes, ranks, sizes. Exit code 2."""


class ModelError(TrtcError):
    """A model that is broken or not supported. Exit code 3."""

    exit_code = 3


class HostError(TrtcError):
    """The environment does not fit: a library, a processor feature, memory, disk. Exit code 4."""

    exit_code = 4
