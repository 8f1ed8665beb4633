"""trtc as a runner of Polygraphy: ``polygraphy run model.onnx --onnxrt --trtc --trtc-bundle model.trtc``.

From Python, with anything else that Polygraphy has:

    from polygraphy.comparator import Comparator
    from trtc.tools.polygraphy_plugin import BundleFromOnnx, TrtcRunner

    results = Comparator.run([TrtcRunner(BundleFromOnnx("model.onnx")), TrtcRunner("other.trtc", mode="bucket")])

Polygraphy finds ``argument_groups`` by the entry point ``polygraphy.run.plugins``. Names are imported when they are
first used: asking for the options of ``polygraphy run`` loads no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtc.tools.polygraphy_plugin.arguments import argument_groups
    from trtc.tools.polygraphy_plugin.loaders import BundleFromOnnx, SaveBundle
    from trtc.tools.polygraphy_plugin.runner import TrtcRunner

__all__ = ["BundleFromOnnx", "SaveBundle", "TrtcRunner", "argument_groups"]

_HOMES = {
    "BundleFromOnnx": "trtc.tools.polygraphy_plugin.loaders",
    "SaveBundle": "trtc.tools.polygraphy_plugin.loaders",
    "TrtcRunner": "trtc.tools.polygraphy_plugin.runner",
    "argument_groups": "trtc.tools.polygraphy_plugin.arguments",
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
