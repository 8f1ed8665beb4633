"""Errors of ours as Polygraphy tells errors: one critical line, no traceback, exit status 1."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER

from trtc.profiles import TrtcError
from trtc.tools.extras import missing_library

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def told_by_polygraphy() -> Iterator[None]:
    """Log errors of ours and raise them as Polygraphy's own; ours are the cause.

    Raises:
        PolygraphyException: for every TrtcError, and for libraries of an extra that are not installed.
    """
    try:
        yield
    except (TrtcError, ImportError) as error:
        ours = error if isinstance(error, TrtcError) else missing_library(error)
        if ours is None:
            raise
        G_LOGGER.log(f"trtc: {ours}", G_LOGGER.CRITICAL)
        raise PolygraphyException(f"trtc: {ours}") from error
