"""trtc as a runner of Polygraphy: ``polygraphy run model.onnx --onnxrt --trtc --trtc-bundle model.trtc``.

From Python, with anything else that Polygraphy has:

    from polygraphy.comparator import Comparator
    from trtc.tools.polygraphy_plugin import BundleFromOnnx, TrtcRunner

    results = Comparator.run([TrtcRunner(BundleFromOnnx("model.onnx")), TrtcRunner("other.trtc", mode="bucket")])

Polygraphy finds ``argument_groups`` by the entry point ``polygraphy.run.plugins``. Names are imported when they are
first used: asking for the options of ``polygraphy run`` loads no engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.on_demand import on_demand

if TYPE_CHECKING:
    from trtc.tools.polygraphy_plugin.arguments import argument_groups
    from trtc.tools.polygraphy_plugin.loaders import BundleFromOnnx, SaveBundle
    from trtc.tools.polygraphy_plugin.runner import TrtcRunner

__all__ = ["BundleFromOnnx", "SaveBundle", "TrtcRunner", "argument_groups"]

if not TYPE_CHECKING:  # else no name would be unknown
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "trtc.tools.polygraphy_plugin.arguments": ("argument_groups",),
            "trtc.tools.polygraphy_plugin.loaders": ("BundleFromOnnx", "SaveBundle"),
            "trtc.tools.polygraphy_plugin.runner": ("TrtcRunner",),
        },
    )
