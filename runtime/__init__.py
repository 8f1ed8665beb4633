"""Load a bundle and run it: ``with load("model.trtc") as session: session.run(feeds)``."""

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
)
from trtc.runtime.loader import load
from trtc.runtime.session import Session
from trtc.runtime.session_facts import Explanation, SessionStats
from trtc.runtime.traffic_log import TrafficWarning
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
