"""What ``trtc exec`` tells the programs that it starts: one JSON text in their environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec

from trtc.profiles.recorded import DEFAULT_SAMPLES, EXEC_VARIABLE


class KnownBundle(msgspec.Struct, frozen=True):
    """A bundle that may stand in for a model.

    Attributes:
        path: of the bundle, absolute.
        source_sha256: digest of the model by content.
        file_sha256: digest of the model file alone; empty where the bundle does not say.
    """

    path: str
    source_sha256: str
    file_sha256: str = ""


class Settings(msgspec.Struct, frozen=True):
    """What to do with the models that a program opens.

    Attributes:
        bundles: looked through in this order.
        record: file that sizes, times and ranges of values are appended to; empty for none.
        samples: feeds that are kept for each model, at most.
        values: whether ranges of values and samples are recorded at all.
        report: file that counts for the summary are appended to; empty for none. It is never made here.
    """

    bundles: tuple[KnownBundle, ...] = ()
    record: str = ""
    samples: int = DEFAULT_SAMPLES
    values: bool = True
    report: str = ""


def settings_from_environment() -> Settings:
    """Read what ``trtc exec`` wrote; nothing to do for programs that it did not start."""
    text = os.environ.get(EXEC_VARIABLE, "")
    # Paths that are no UTF-8 come as lone surrogates, which msgspec's own reader of JSON refuses.
    return msgspec.convert(json.loads(text), Settings) if text else Settings()


def settings_for(*bundles: str | os.PathLike[str]) -> Settings:
    """Read the digests of bundles, for programs that use the session class themselves.

    Raises:
        UsageError: when there is no bundle at a path.
        BundleError: when one cannot be read.
    """
    return Settings(bundles=tuple(known_bundle(Path(path)) for path in bundles))


def known_bundle(path: Path) -> KnownBundle:
    """Read which model a bundle was built from.

    Raises:
        UsageError, BundleError: as ``settings_for``.
    """
    from trtc.engines.bundle import read_manifest

    manifest = read_manifest(path)
    file = "" if manifest.original is None else manifest.original.file_sha256
    return KnownBundle(str(path.resolve()), manifest.source.sha256, file)
