"""Why an engine failed on real inputs: values beside those that the build ran with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.profiles import RequestError, TrtcError
from trtc.tools.generated import value_domains

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.engines.errors import EngineError
    from trtc.engines.manifest import Manifest


def explained(error: EngineError, manifest: Manifest, feeds: Mapping[str, Any]) -> TrtcError:
    """Return the error of a run with what the bundle knows about values.

    Only whole numbers are blamed, and only after a failure: an engine may well take values that no experiment had, but
    an index outside of its table ends a run.

    Args:
        error: that the engine gave.
        manifest: of the bundle.
        feeds: inputs by name.

    Returns:
        A RequestError that names input, value and range, where one lies outside of a range that the bundle holds; else
        an error of the same kind as before.
    """
    domains = value_domains(manifest, ())
    for name, value in feeds.items():
        if name not in domains or not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or not value.size:
            continue
        domain, low, high = domains[name], int(value.min()), int(value.max())
        if not domain.low <= low <= high <= domain.high:
            found = low if low < domain.low else high
            return RequestError(
                f"input {name!r} holds {found}, this bundle was built with values of "
                f"{domain.low:.0f}..{domain.high:.0f}; give values inside of that ({error})"
            )
    ran = next((evidence.samples for evidence in manifest.evidence if evidence.samples), "")
    return type(error)(f"{error}; the build ran it with values {ran}") if ran else error
