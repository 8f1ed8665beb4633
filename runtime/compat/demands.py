"""What a program asks ONNX Runtime for when it opens a session, and whether a bundle can stand in for that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from trtc.engines.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CPU = "CPUExecutionProvider"
_IDLE = frozenset(["AzureExecutionProvider"])
"""Providers that ONNX Runtime lists on a plain CPU and that run no node of an ordinary model."""
_NUMBERS = "session.set_denormal_as_zero"
_SPINNING = "session.intra_op.allow_spinning"
_FILES = ("session.model_external_initializers_file_folder_path", "session.load_model_format")
_UNREADABLE = (
    "add_active_adapter",
    "add_external_initializers",
    "add_external_initializers_from_files_in_memory",
    "add_free_dimension_override_by_denotation",
    "add_free_dimension_override_by_name",
    "add_initializer",
    "add_run_config_entry",
    "register_custom_ops_library",
    "set_provider_selection_policy",
    "set_provider_selection_policy_delegate",
)
"""Methods of session options, and of options of a run, whose effect cannot be read back from them."""
_UNREADABLE_OPTIONS: WeakSet[Any] = WeakSet()
"""Objects that one of them was called on; what watches them belongs to the process."""


class Demands(Value, frozen=True):
    """What a bundle has to keep.

    Attributes:
        refusal: why only ONNX Runtime itself can serve this session; empty where a bundle may.
        providers: what ``get_providers`` says.
        threads: of one call; None where the program leaves it open.
        spinning: whether idle threads may wait actively.
    """

    refusal: str = ""
    providers: tuple[str, ...] = (CPU,)
    threads: int | None = None
    spinning: bool = True


def demands_of(
    options: Any, providers: Any, provider_options: Any, others: dict[str, Any], available: Sequence[str]
) -> Demands:
    """Read the arguments of a session.

    Args:
        options: ``SessionOptions`` or None.
        providers: as given.
        provider_options: as given.
        others: further keywords.
        available: providers of this ONNX Runtime.
    """
    if not set(available) <= {CPU, *_IDLE} and not providers:
        return Demands(f"no providers named, and this ONNX Runtime has {', '.join(available)}")
    named, refusal = _providers(providers, provider_options, available)
    if not refusal:
        refusal = _refused_options(options) or _refused_keywords(others)
    if not refusal and options is not None and unreadable(options):
        refusal = "session options that cannot be read back, such as overridden dimensions or custom operators"
    if refusal or options is None:
        return Demands(refusal, named)
    threads = options.intra_op_num_threads
    return Demands(
        providers=named,
        threads=threads if threads > 0 else None,
        spinning=_entry(options, _SPINNING) != "0",
    )


def watch_options(options_class: Any) -> None:
    """Make a class of options, of sessions or of runs, remember objects that hold what cannot be read back."""
    for name in _UNREADABLE:
        original = getattr(options_class, name, None)
        if original is not None and not hasattr(original, "trtc_watched"):
            setattr(options_class, name, _watched(original))


def unreadable(options: Any) -> bool:
    """Tell whether options hold what cannot be read back."""
    return options in _UNREADABLE_OPTIONS


def _watched(original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        _UNREADABLE_OPTIONS.add(self)
        return original(self, *args, **kwargs)

    method.__name__ = original.__name__
    method.__doc__ = original.__doc__
    method.trtc_watched = True  # type: ignore[attr-defined]
    return method


def _providers(providers: Any, options: Any, available: Collection[str]) -> tuple[tuple[str, ...], str]:
    """Return what the session will have, and why a bundle cannot serve it."""
    if not providers:
        return (CPU,), "" if providers is None or providers == [] else "providers that ONNX Runtime refuses"
    if not isinstance(providers, list | tuple) or options is not None:
        return (), "options of providers" if options is not None else "providers that ONNX Runtime refuses"
    names = []
    for item in providers:
        name = item[0] if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], dict) else item  # noqa: PLR2004 (name and options)
        if not isinstance(name, str):
            return (), "providers that ONNX Runtime refuses"
        if name in names:
            return (), f"provider {name} is named twice"
        if name in available:
            names.append(name)
    if other := [name for name in names if name not in {CPU, *_IDLE}]:
        return (), f"provider {other[0]}"
    return tuple(names if CPU in names else [*names, CPU]), ""


def _refused_options(options: Any) -> str:
    if options is None:
        return ""
    if options.enable_profiling:
        return "a profile of the run is asked for"
    if options.optimized_model_filepath:
        return "the optimised model is to be written to a file"
    if getattr(options, "has_providers", lambda: False)():
        return "providers in the session options"
    if getattr(options, "use_deterministic_compute", False):
        return "deterministic kernels are asked for"
    if _entry(options, _NUMBERS) == "1":
        return f"{_NUMBERS} is set"
    return next((f"{key} is set" for key in _FILES if _entry(options, key)), "")


def _refused_keywords(others: dict[str, Any]) -> str:
    if others.get("disabled_optimizers"):
        return "optimizers are disabled by name"
    if others.get("read_config_from_model") or os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1":
        return "options are read from the model"
    return ""


def _entry(options: Any, key: str) -> str:
    try:
        return str(options.get_session_config_entry(key))
    except RuntimeError:  # it has none
        return ""
