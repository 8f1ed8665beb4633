"""Runs with ``RunOptions``: which a bundle may serve, and stopping one with ``terminate`` from another thread."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from trtc.engines.errors import CancelledError
from trtc.runtime.cancel import CancelToken
from trtc.runtime.compat.demands import unreadable
from trtc.runtime.compat.exact import InexactError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.runtime.compat.served import Answer, Served

_QUIET = frozenset(["log_severity_level", "log_verbosity_level", "logid"])
"""Options that change what is logged, not what is answered."""
_TERMINATED = "Exiting due to terminate flag being set to true."
_RUNNING: WeakKeyDictionary[Any, set[CancelToken]] = WeakKeyDictionary()
"""Tokens of the runs in flight by their options; what watches those belongs to the process."""


def run_with(options: Any, library: Any, method: str, served: Served, request: tuple[Any, Mapping[str, Any]]) -> Answer:
    """Run once with options; setting ``terminate`` meanwhile, in another thread, stops the run.

    Args:
        options: as given.
        library: the module ``onnxruntime.capi._pybind_state``.
        method: of the session, that was called.
        served: the bundle.
        request: output names and feeds, as ``Served.run`` takes them.

    Raises:
        InexactError: for options that only ONNX Runtime can follow, and as ``Served.run``.
        TrtcError: as ``Served.run``.
        Exception: ONNX Runtime's own, when the run was stopped.
    """
    reason = _refusal(options, library.RunOptions)
    if reason:
        raise InexactError(reason)
    _watch_terminate(library.RunOptions)
    token = CancelToken()
    tokens = _RUNNING.setdefault(options, set())
    tokens.add(token)
    try:
        if options.terminate:  # since it was looked at
            token.cancel()
        return served.under(token).run(*request)
    except CancelledError:
        # Bindings and other runs name it differently.
        if method == "run_with_iobinding":
            raise RuntimeError(f"Error in execution: {_TERMINATED}") from None
        raise library.Fail(f"[ONNXRuntimeError] : 1 : FAIL : {_TERMINATED}") from None
    finally:
        tokens.discard(token)


def _refusal(options: Any, kind: Any) -> str:
    """Say why only ONNX Runtime can follow these options; empty where a bundle can."""
    own = type(options) is kind
    if not own:
        return "run options that are none of ONNX Runtime's own"
    if unreadable(options):
        return "run options that cannot be read back, such as entries or adapters"
    for name, usual in _usual(kind):
        if getattr(options, name) != usual:
            return f"run option {name} is set"
    return ""


@cache
def _usual(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return all options that can be read and matter, as they are when nobody set them."""
    fresh = kind()
    names = [name for name in dir(kind) if not name.startswith("_") and name not in _QUIET]
    return tuple((name, value) for name in names if not callable(value := getattr(fresh, name)))


def _watch_terminate(kind: Any) -> None:
    """Make a class of run options tell the runs in flight when ``terminate`` is set."""
    original = kind.terminate
    if isinstance(original, _Watched):
        return

    def terminate(options: Any, value: Any) -> None:
        original.fset(options, value)
        if options.terminate:
            for token in tuple(_RUNNING.get(options, ())):
                token.cancel()

    kind.terminate = _Watched(original.fget, terminate, doc=original.__doc__)


class _Watched(property):
    """The option ``terminate``, watched."""
