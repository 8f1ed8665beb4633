"""The bundles that ``trtc exec`` was given: which models they stand for, read without the libraries that load them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MANIFEST = "manifest.json"


class GivenBundle(NamedTuple):
    """A bundle, as far as its manifest is needed here. The program that loads it checks the rest.

    Attributes:
        path: absolute.
        source_sha256: digest of the model by content.
        file_sha256: digest of the model file; empty where the bundle does not say.
        recorded: what calls took in the program whose traffic it was built for.
    """

    path: str
    source_sha256: str
    file_sha256: str
    recorded: tuple[dict[str, Any], ...]

    @property
    def identity(self) -> dict[str, str]:
        """What the program is told."""
        return {"path": self.path, "source_sha256": self.source_sha256, "file_sha256": self.file_sha256}


def given_bundles(bundles: Sequence[str], folders: Sequence[str]) -> tuple[GivenBundle, ...]:
    """Read bundles, and those that lie in folders.

    Raises:
        UsageError: where there is none.
        CheckError: for a manifest that cannot be read.
    """
    paths = [Path(bundle) for bundle in bundles]
    for folder in folders:
        paths += _inside(Path(folder))
    return tuple(map(_read, paths))


def _inside(folder: Path) -> list[Path]:
    from trtc.profiles import UsageError

    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; --bundles takes a folder that holds bundles")
    inside = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    if not inside:
        raise UsageError(f"{folder}: no bundle lies in it; give the folder that holds NAME.trtc folders")
    return inside


def _read(path: Path) -> GivenBundle:
    from trtc.profiles import CheckError, UsageError

    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        original = manifest.get("original") or {}
        file_sha256 = str(original.get("file_sha256", ""))
        recorded = tuple({**entry, "model": file_sha256} for entry in original.get("recorded", ()))
        return GivenBundle(str(path.resolve()), str(manifest["source"]["sha256"]), file_sha256, recorded)
    except OSError as error:
        raise UsageError(f"{path}: no bundle there ({error.strerror}); give the path of a NAME.trtc folder") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckError(f"{path}: its manifest cannot be read; copy the bundle again or rebuild it") from error
