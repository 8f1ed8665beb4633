"""Whether, and which, bundle stands in for a session that a program opens."""

from __future__ import annotations

from threading import local
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trtc.engines.value import Value
from trtc.profiles import TrtcError
from trtc.runtime.compat.demands import demands_of
from trtc.runtime.compat.digest import bundle_for

if TYPE_CHECKING:
    from collections.abc import Collection

    from trtc.runtime.compat.counts import ModelCounts
    from trtc.runtime.compat.served import Served
    from trtc.runtime.compat.settings import KnownBundle

_OPENING = "InferenceSession"
loading = local()
"""``loading.now`` is True in a thread that opens a bundle: sessions that its engine makes are ONNX Runtime's own."""


class Asked(Value, frozen=True):
    """What a program gave to the constructor of a session, and the library that it gave it to.

    Attributes:
        model, options, providers, provider_options, keywords: as given.
        collection: the module that defines the session class.
    """

    model: Any
    options: Any
    providers: Any
    provider_options: Any
    keywords: dict[str, Any]
    collection: Any


def stand_in(asked: Asked, counts: ModelCounts, bundles: Collection[KnownBundle]) -> Served | None:
    """Open the bundle for a session; None where none serves it. Why one does not is counted."""
    bundle = bundle_for(counts.digest, bundles)
    if bundle is None:
        return None
    begin = perf_counter()
    available = asked.collection.C.get_available_providers()
    demands = demands_of(asked.options, asked.providers, asked.provider_options, asked.keywords, available)
    if demands.refusal:
        counts.fell_through(_OPENING, demands.refusal)
        return None
    loading.now = True
    try:
        from trtc.runtime.compat.served import open_served  # a program that is only recorded does not wait for it

        served = open_served(bundle, asked.model, counts.digest, demands)
    except (TrtcError, ImportError, OSError) as error:
        counts.fell_through(_OPENING, f"the bundle cannot be opened: {error}")
        return None
    finally:
        loading.now = False
    # The library says what it always says about providers that are not there.
    asked.collection.check_and_normalize_provider_args(asked.providers or None, None, available)
    if counts.sampler is not None and served.facts is not None:
        counts.sampler.types = {arg.name: arg.type for arg in served.facts.inputs}
    counts.opened(perf_counter() - begin, bundle.path)
    return served
