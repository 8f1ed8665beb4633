"""A bundle that stands in for one session of ONNX Runtime."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.host import this_host
from trtc.engines.signature import numpy_dtype
from trtc.profiles import HostError, TrtcError
from trtc.runtime.compat.digest import has_external_data
from trtc.runtime.compat.exact import InexactError, exact_feeds, exact_names
from trtc.runtime.compat.facts import facts_of
from trtc.runtime.loader import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtc.engines.signature import TensorSpec
    from trtc.runtime.cancel import CancelToken
    from trtc.runtime.compat.demands import Demands
    from trtc.runtime.compat.settings import KnownBundle
    from trtc.runtime.session import Session

    Answer = tuple[list[Any], tuple[Any, ...], Mapping[str, Any]]


class Served:
    """Answers of a bundle in the form that ONNX Runtime gives them. Any thread may call.

    Attributes:
        facts: what it says about the model; None where the bundle does not hold that.
        providers: what it says about providers.
        order: names of the inputs.
        input_dtypes, output_dtypes: by name; None where ONNX Runtime's own conversions decide.
    """

    def __init__(self, session: Session, demands: Demands) -> None:
        manifest = session.manifest
        self.facts = facts_of(manifest)
        self.providers = list(demands.providers)
        self._run: Callable[..., dict[str, Any]] = session.run
        self._outputs = [spec.public_name for spec in manifest.signature.outputs]
        self._names = tuple(self._outputs)
        dtypes = {spec.name: _dtype(spec) for spec in manifest.signature.inputs}
        if self.facts is not None:
            self._dtypes = {arg.name: dtypes.get(arg.name) for arg in self.facts.inputs}
        else:
            self._dtypes = {spec.name: dtypes[spec.name] for spec in manifest.signature.inputs if not spec.has_default}
        self.order = tuple(self._dtypes)
        self.input_dtypes = self._dtypes
        self.output_dtypes = {spec.public_name: _dtype(spec) for spec in manifest.signature.outputs}
        self._plain = tuple(self._dtypes.items())

    def run(self, names: Any, feeds: Mapping[str, Any]) -> Answer:
        """Run once.

        Returns:
            The outputs that were asked for, the shapes of the inputs in that ``order``, and the inputs as arrays.

        Raises:
            InexactError: for what only ONNX Runtime itself can answer.
            TrtcError: for what the bundle refuses; ONNX Runtime may take it, or has its own error for it.
        """
        shapes = []
        exact = True
        try:
            for name, dtype in self._plain:
                array = feeds[name]
                shapes.append(array.shape)
                if type(array) is not np.ndarray or array.dtype is not dtype:
                    exact = False
            if len(feeds) != len(shapes):
                raise InexactError("an input that the model does not have")
        except (LookupError, TypeError, AttributeError):
            exact = False
        if not exact:
            feeds = self._checked(feeds)
            shapes = [feeds[name].shape for name in self.order]
        everything = names is None or (type(names) is list and names == self._outputs)
        wanted = self._names if everything else exact_names(names, self._names)
        results = self._run(feeds)
        return [results[name] for name in wanted], tuple(shapes), feeds

    def under(self, token: CancelToken) -> Served:
        """Return this with runs that a token stops."""
        twin = object.__new__(Served)
        twin.__dict__.update(self.__dict__)
        twin._run = partial(self._run, cancel=token)
        return twin

    def _checked(self, feeds: Any) -> dict[str, Any]:
        if not hasattr(feeds, "keys") or set(feeds.keys()) != self._dtypes.keys():
            raise InexactError("inputs that are missing, or that the model does not have")
        return exact_feeds(feeds, self._dtypes)


def open_served(bundle: KnownBundle, model: object, file_sha256: str, demands: Demands) -> Served:
    """Open a bundle in place of a model.

    Raises:
        TrtcError: when it cannot be opened here, or was built with other weights beside the model file.
    """
    # As in ONNX Runtime, whose sessions run every call at once, each on all processors: how many calls a program makes
    # at once is not known, and none may wait that would not wait there, however few the build found best.
    processors = this_host().threads
    threads = demands.threads or processors
    session = load(bundle.path, device="cpu", slots=processors, threads=threads, spinning=demands.spinning)
    manifest = session.manifest
    pieces = () if manifest.original is None else manifest.original.external
    if not has_external_data(model, file_sha256, manifest.source.sha256, pieces):
        session.close()
        raise HostError("the weights beside the model file are not those that the bundle was built from")
    return Served(session, demands)


def _dtype(spec: TensorSpec) -> np.dtype[Any] | None:
    """Return the type that arrays have; None where ONNX Runtime's own conversions decide."""
    if not spec.is_tensor:
        return None
    try:
        dtype = numpy_dtype(spec.dtype)
    except TrtcError:
        return None
    return dtype if dtype.kind in "biufO" and dtype.type.__module__ == "numpy" else None
