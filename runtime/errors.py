"""Errors and warnings of the runtime."""

from __future__ import annotations

from trtc.profiles import HostError, TrtcError


class LeaseError(TrtcError):
    """A slot was used against its state: touched while work is submitted, returned twice, used after its block."""

    exit_code = 1


class SlotTimeoutError(TrtcError, TimeoutError):
    """No slot became free within the time that the caller allowed."""

    exit_code = 1


class SessionClosedError(TrtcError):
    """The session was closed, or belongs to another process."""

    exit_code = 2


class MemoryBudgetError(HostError):
    """The planned memory does not fit into the budget. Exit code 4."""


class KeptViewWarning(RuntimeWarning):
    """A borrowed view outlived its block: it stays valid, and its memory cannot be used for other calls meanwhile."""


class LostLeaseWarning(ResourceWarning):
    """A lease was dropped without being returned; it was reclaimed."""


class TrafficWarning(RuntimeWarning):
    """Traffic could not be recorded; requests are served all the same."""
