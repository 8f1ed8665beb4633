"""The bundles that ``trtc exec`` was given: which models they stand for, read without the libraries that load them."""

from __future__ import annotations

import json
import os
from collections import namedtuple

TYPE_CHECKING = False  # importing typing takes 2 ms, and pathlib 3
if TYPE_CHECKING:
    from collections.abc import Sequence

MANIFEST = "manifest.json"

GivenBundle = namedtuple("GivenBundle", ["path", "source_sha256", "file_sha256", "recorded"])  # noqa: PYI024 (typing again)
GivenBundle.__doc__ = """A bundle, as far as its manifest is needed here. The program that loads it checks the rest.

Attributes:
    path: absolute, as text.
    source_sha256: digest of the model by content.
    file_sha256: digest of the model file; empty where the bundle does not say.
    recorded: what calls took in the program whose traffic it was built for: a tuple of dicts.
"""


def given_bundles(bundles: Sequence[str], folders: Sequence[str]) -> tuple[GivenBundle, ...]:
    """Read bundles, and those that lie in folders.

    Raises:
        UsageError: where there is none.
        CheckError: for a manifest that cannot be read.
    """
    paths = list(bundles)
    for folder in folders:
        paths += _inside(folder)
    return tuple(map(_read, paths))


def identity(bundle: GivenBundle) -> dict[str, str]:
    """Return what the program is told of a bundle."""
    return {"path": bundle.path, "source_sha256": bundle.source_sha256, "file_sha256": bundle.file_sha256}


def _inside(folder: str) -> list[str]:
    from trtc.profiles import UsageError

    if not os.path.isdir(folder):
        raise UsageError(f"{folder}: no such folder; --bundles takes a folder that holds bundles")
    names = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name, MANIFEST)))
    if not names:
        raise UsageError(f"{folder}: no bundle lies in it; give the folder that holds NAME.trtc folders")
    return [os.path.join(folder, name) for name in names]


def _read(path: str) -> GivenBundle:
    from trtc.profiles import CheckError, UsageError

    try:
        with open(os.path.join(path, MANIFEST), "rb") as file:
            manifest = json.loads(file.read())
        original = manifest.get("original") or {}
        file_sha256 = str(original.get("file_sha256", ""))
        recorded = tuple({**entry, "model": file_sha256} for entry in original.get("recorded", ()))
        return GivenBundle(os.path.realpath(path), str(manifest["source"]["sha256"]), file_sha256, recorded)
    except OSError as error:
        raise UsageError(f"{path}: no bundle there ({error.strerror}); give the path of a NAME.trtc folder") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckError(f"{path}: its manifest cannot be read; copy the bundle again or rebuild it") from error
