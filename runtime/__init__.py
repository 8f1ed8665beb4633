"""Load a bundle and run it: ``with load("model.trtc") as session: session.run(feeds)``.

Names are imported when they are first used: a program whose traffic is recorded needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.on_demand import on_demand

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

if not TYPE_CHECKING:  # else no name would be unknown
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "trtc.engines.chunks": ("ArenaStats",),
            "trtc.engines.errors": ("BundleError", "CancelledError", "EngineError"),
            "trtc.profiles": ("CheckError", "HostError", "RequestError", "TrtcError", "UsageError"),
            "trtc.runtime.arena": ("Arena",),
            "trtc.runtime.cancel": ("CancelToken",),
            "trtc.runtime.errors": (
                "KeptViewWarning",
                "LeaseError",
                "LostLeaseWarning",
                "MemoryBudgetError",
                "SessionClosedError",
                "SlotTimeoutError",
                "TrafficWarning",
            ),
            "trtc.runtime.loader": ("load",),
            "trtc.runtime.session": ("Session",),
            "trtc.runtime.session_facts": ("Explanation", "SessionStats"),
            "trtc.runtime.verdicts": ("Verdict",),
        },
    )
