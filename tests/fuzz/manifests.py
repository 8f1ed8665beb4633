"""Manifests: edited bytes and edited JSON, read as a runtime reads them. Only BundleError may come out."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

from mutations import edited_bytes, edited_json

from trtc.engines.bundle import read_manifest
from trtc.engines.checksum import sealed
from trtc.engines.errors import BundleError
from trtc.engines.manifest_file import manifest_from_bytes
from trtc.engines.manifest_json import decode_manifest, encode_manifest

if TYPE_CHECKING:
    from pathlib import Path


class Manifests:
    """Half of the cases carry a checksum that fits their bytes, as a forger would write it."""

    name = "manifest"
    outcomes = ("refused", "accepted when forged", "unchanged")
    folders = None
    secrets = None

    def __init__(self, seed: int, bundles: list[Path]) -> None:
        self._seed = seed
        self._bundles = bundles
        self._originals = [(path / "manifest.json").read_bytes() for path in bundles]
        for path in bundles:
            read_manifest(path)

    def case(self, number: int) -> tuple[bytes, bool]:
        rng = random.Random(f"{self._seed} {number}")  # noqa: S311 (repeatable, not secret)
        data = rng.choice(self._originals)
        edited = (edited_bytes if rng.random() < 0.5 else edited_json)(data, rng)
        forged = rng.random() < 0.5
        if forged:
            with contextlib.suppress(BundleError):
                edited = sealed(edited)
        return edited, forged

    def run(self, case: tuple[bytes, bool]) -> str:
        data, forged = case
        try:
            manifest = manifest_from_bytes(self._bundles[0], data)
        except BundleError as error:
            if "Traceback" in str(error):
                raise AssertionError("a traceback in a message") from error
            return "refused"
        if data in self._originals:
            return "unchanged"
        if not forged:
            raise AssertionError("an altered manifest was read")
        again = decode_manifest(encode_manifest(manifest))
        if encode_manifest(again) != encode_manifest(manifest):
            raise AssertionError("writing and reading changed it")
        return "accepted when forged"

    def saved(self, case: tuple[bytes, bool]) -> bytes:
        return case[0]
