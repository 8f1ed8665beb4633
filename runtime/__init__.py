"""Load a bundle and run it: ``with load("model.trtc") as session: session.run(feeds)``.

Names are imported when they are first used: a program whose traffic is recorded needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtc.engines.chunks import ArenaStats
    from trtc.engines.errors import BundleError, CancelledError, EngineError
    from trtc.profiles import CheckError, HostError, RequestError, TrtcError, UsageError
    from trtc.runtime.arena import Arena
    from trtc.runtime.cancel import CancelToken
    from trtc.runtime.errors import (
        KeptViewWarning,
        LeaseError,
        LostLeaseWarning,
        MemoryBudgetError,
        SessionClosedError,
        SlotTimeoutError,
        TrafficWarning,
    )
    from trtc.runtime.loader import load
    from trtc.runtime.session import Session
    from trtc.runtime.session_facts import Explanation, SessionStats
    from trtc.runtime.verdicts import Verdict

__all__ = [
    "Arena",
    "ArenaStats",
    "BundleError",
    "CancelToken",
    "CancelledError",
    "CheckError",
    "EngineError",
    "Explanation",
    "HostError",
    "KeptViewWarning",
    "LeaseError",
    "LostLeaseWarning",
    "MemoryBudgetError",
    "RequestError",
    "Session",
    "SessionClosedError",
    "SessionStats",
    "SlotTimeoutError",
    "TrafficWarning",
    "TrtcError",
    "UsageError",
    "Verdict",
    "load",
]

_HOMES = {
    "Arena": "trtc.runtime.arena",
    "ArenaStats": "trtc.engines.chunks",
    "BundleError": "trtc.engines.errors",
    "CancelToken": "trtc.runtime.cancel",
    "CancelledError": "trtc.engines.errors",
    "CheckError": "trtc.profiles",
    "EngineError": "trtc.engines.errors",
    "Explanation": "trtc.runtime.session_facts",
    "HostError": "trtc.profiles",
    "KeptViewWarning": "trtc.runtime.errors",
    "LeaseError": "trtc.runtime.errors",
    "LostLeaseWarning": "trtc.runtime.errors",
    "MemoryBudgetError": "trtc.runtime.errors",
    "RequestError": "trtc.profiles",
    "Session": "trtc.runtime.session",
    "SessionClosedError": "trtc.runtime.errors",
    "SessionStats": "trtc.runtime.session_facts",
    "SlotTimeoutError": "trtc.runtime.errors",
    "TrafficWarning": "trtc.runtime.errors",
    "TrtcError": "trtc.profiles",
    "UsageError": "trtc.profiles",
    "Verdict": "trtc.runtime.verdicts",
    "load": "trtc.runtime.loader",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
