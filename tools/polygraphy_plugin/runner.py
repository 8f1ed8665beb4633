"""A runner of Polygraphy that runs a bundle."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from polygraphy import util
from polygraphy.backend.base import BaseRunner

from trtc.runtime import load
from trtc.tools.polygraphy_plugin.errors import told_by_polygraphy
from trtc.tools.polygraphy_plugin.metadata import input_metadata

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    import numpy as np
    from polygraphy.common import TensorMetadata

    from trtc.engines.manifest import Mode
    from trtc.runtime import Session


class TrtcRunner(BaseRunner):  # type: ignore[misc]
    """Runs a bundle with trtc's runtime. One thread at a time, as every runner of Polygraphy.

    Args:
        bundle: path of a bundle, or a callable that returns one, such as ``BundleFromOnnx``.
        name: in Polygraphy's reports; None makes one up.
        engine: of the bundle; ``auto`` for the first that fits this host.
        profile: serve requests in this profile only; None picks one for each.
        mode: ``exact`` or ``bucket``; None takes what the build chose.
        threads: of one call; None takes what the build measured.
    """

    def __init__(  # noqa: PLR0913 (each is one option of `load`)
        self,
        bundle: str | os.PathLike[str] | Callable[[], str | os.PathLike[str]],
        name: str | None = None,
        *,
        engine: str = "auto",
        profile: str | None = None,
        mode: Mode | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(name=name, prefix="trtc-runner")
        self._bundle = bundle
        self._options: dict[str, Any] = {"engine": engine, "profile": profile, "mode": mode, "threads": threads}

    @util.check_called_by("activate")  # type: ignore[untyped-decorator,unused-ignore]
    def activate_impl(self) -> None:
        """Load the bundle."""
        with told_by_polygraphy():
            path, _ = util.invoke_if_callable(self._bundle)
            self.session: Session = load(path, slots=1, **self._options)

    @util.check_called_by("get_input_metadata")  # type: ignore[untyped-decorator,unused-ignore]
    def get_input_metadata_impl(self) -> TensorMetadata:
        """Describe the inputs: symbols stay names, and sizes that the bundle serves bound them."""
        with told_by_polygraphy():
            return input_metadata(self.session.manifest)

    @util.check_called_by("infer")  # type: ignore[untyped-decorator,unused-ignore]
    def infer_impl(self, feed_dict: Mapping[str, Any]) -> OrderedDict[str, np.ndarray]:
        """Run once; call ``infer`` instead.

        Args:
            feed_dict: a numpy array or a PyTorch tensor for each input.

        Returns:
            numpy arrays by output name, PyTorch tensors where those came in. The caller owns them.
        """
        torch = any(util.array.is_torch(value) for value in feed_dict.values())
        feeds = {name: util.array.to_numpy(value) for name, value in feed_dict.items()}
        with told_by_polygraphy():
            started_s = time.perf_counter()
            outputs = self.session.run(feeds)
            self.inference_time = time.perf_counter() - started_s
        return OrderedDict((name, util.array.to_torch(v) if torch else v) for name, v in outputs.items())

    @util.check_called_by("deactivate")  # type: ignore[untyped-decorator,unused-ignore]
    def deactivate_impl(self) -> None:
        """Close the session."""
        self.session.close()
        del self.session
