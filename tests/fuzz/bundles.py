"""Altered bundles: blobs, manifests, links, pipes; loaded and run as a user would, and written over by a new build."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mutations import edited_bytes, edited_json

from trtc.engines.blobs import blobs_of
from trtc.engines.bundle import read_manifest, write_bundle
from trtc.engines.checksum import sealed
from trtc.engines.errors import BundleError
from trtc.engines.signature import numpy_dtype
from trtc.profiles import TrtcError
from trtc.runtime import Arena, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtc.runtime import Session

FEEDS = {
    "padded": {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "mask": np.array([[1, 1, 0], [1, 0, 0]])},
    "exact": {"x": np.arange(12, dtype=np.float32).reshape(3, 4)},
}


@dataclass(frozen=True)
class Alteration:
    """What is done to a copy of a bundle.

    Attributes:
        bundle: name of the original.
        what: for people.
        apply: does it to the copy.
        kind: ``altered`` must be refused, ``harmless`` must load and answer right, ``forged`` may do either.
        rewrite: write the original over it afterwards.
    """

    bundle: str
    what: str
    apply: Callable[[Path], None]
    kind: str
    rewrite: bool


class Bundles:
    """Copies of real bundles, each altered in one way."""

    name = "bundles"
    outcomes = ("refused", "harmless, loaded", "forged, refused", "forged, loaded", "written over")

    def __init__(self, seed: int, folder: Path, bundles: list[Path]) -> None:
        self._seed = seed
        self._work = folder / "bundle work"
        self.secrets = folder / "bundle secrets"
        (self.secrets / "blobs").mkdir(parents=True)
        (self.secrets / "secret").write_bytes(b"secret")
        self._bundles = {path.stem: path for path in bundles}
        self._expected = {}
        for name, path in self._bundles.items():
            with load(path, threads=1, slots=1, arena=Arena()) as session:
                self._expected[name] = session.run(FEEDS[name])
            shutil.copy(path / "manifest.json", self.secrets / f"{name}.json")
            for blob in (path / "blobs").iterdir():
                shutil.copy(blob, self.secrets / "blobs")
        self._secret_files = [path for path in self.secrets.rglob("*") if path.is_file()]
        self._times = self._secret_times()
        self.folders = (self._work, *self._bundles.values())

    def case(self, number: int) -> Alteration:
        rng = random.Random(f"{self._seed} {number}")  # noqa: S311 (repeatable, not secret)
        name = rng.choice(list(self._bundles))
        path = self._bundles[name]
        what, apply, kind = rng.choice([self._blob, self._manifest, self._manifest, self._folder])(path, rng)
        return Alteration(name, what, apply, kind, rewrite=rng.random() < 0.25)

    def run(self, case: Alteration) -> str:
        shutil.rmtree(self._work, ignore_errors=True)
        copy = self._work / "copy.trtc"
        shutil.copytree(self._bundles[case.bundle], copy)
        case.apply(copy)
        loaded = self._loads(case, copy)
        outcome = self._judged(case, copy, loaded=loaded)
        if self._secret_times() != self._times:
            raise AssertionError(f"a file that a link leads to was written: {case.what}")
        return outcome

    def _judged(self, case: Alteration, copy: Path, *, loaded: bool) -> str:
        if case.kind == "altered" and loaded:
            raise AssertionError(f"an altered bundle was loaded: {case.what}")
        if case.kind == "harmless" and not loaded:
            raise AssertionError(f"a whole bundle was refused: {case.what}")
        if case.rewrite:
            self._write_over(case, copy)
            return "written over"
        if case.kind == "forged":
            return "forged, loaded" if loaded else "forged, refused"
        return "harmless, loaded" if loaded else "refused"

    def _secret_times(self) -> list[int]:
        return [path.stat().st_mtime_ns for path in self._secret_files]  # opens nothing

    def saved(self, case: Alteration) -> bytes:
        return f"bundle {case.bundle}, {case.kind}: {case.what}".encode()

    def _loads(self, case: Alteration, copy: Path) -> bool:
        """Load and run a bundle; return whether it loaded."""
        try:
            session = load(copy, slots=1, threads=1, arena=Arena(64 * 2**20))
        except TrtcError as error:
            if case.kind == "altered" and not isinstance(error, BundleError):
                raise
            return False
        with session:
            if case.kind == "harmless":
                found = session.run(FEEDS[case.bundle])
                for name, expected in self._expected[case.bundle].items():
                    np.testing.assert_array_equal(found[name], expected)
            else:
                for size in (1, 3, 2):
                    with contextlib.suppress(TrtcError):
                        session.run(made_up(session, size))
        return True

    def _write_over(self, case: Alteration, copy: Path) -> None:
        original = self._bundles[case.bundle]
        manifest = read_manifest(original)
        try:
            write_bundle(copy, manifest, {path: original / path for path in blobs_of(manifest)})
        except TrtcError:
            return
        with load(copy, slots=1, threads=1, arena=Arena()) as session:
            found = session.run(FEEDS[case.bundle])
        for name, expected in self._expected[case.bundle].items():
            np.testing.assert_array_equal(found[name], expected)

    def _blob(self, path: Path, rng: random.Random) -> tuple[str, Callable[[Path], None], str]:
        blob = rng.choice(sorted((path / "blobs").iterdir())).name
        how = rng.choice(["edit", "edit", "edit", "edit", "link", "remove", "pipe", "folder", "empty", "hard link"])
        edited = edited_bytes((path / "blobs" / blob).read_bytes(), rng)
        same = edited == (path / "blobs" / blob).read_bytes()
        kind = "harmless" if how == "edit" and same else "forged" if how == "hard link" else "altered"
        return f"{how} {blob}", partial(self._replace, f"blobs/{blob}", how, edited), kind

    def _manifest(self, path: Path, rng: random.Random) -> tuple[str, Callable[[Path], None], str]:
        data = (path / "manifest.json").read_bytes()
        edited = (edited_bytes if rng.random() < 0.4 else edited_json)(data, rng)
        kind = "harmless" if edited == data else "altered"
        if rng.random() < 0.6:
            with contextlib.suppress(BundleError):
                edited = sealed(edited)
                kind = "harmless" if edited == data else "forged"
        return "edit manifest.json", partial(self._replace, "manifest.json", "edit", edited), kind

    def _folder(self, path: Path, rng: random.Random) -> tuple[str, Callable[[Path], None], str]:
        name, how, kind = rng.choice(
            [
                ("blobs", "link", "altered"),
                ("manifest.json", "link", "altered"),
                ("manifest.json", "pipe", "altered"),
                ("manifest.json", "folder", "altered"),
                ("manifest.json", "remove", "altered"),
                ("blobs", "remove", "altered"),
                (".trtc-readers", "link", "harmless"),
                (".trtc-readers", "pipe", "harmless"),
                (".trtc-readers", "folder", "harmless"),
                (".trtc-readers", "remove", "harmless"),
                (".trtc-writer", "link", "harmless"),
                (".trtc-writer", "pipe", "harmless"),
                (".trtc-writer", "remove", "harmless"),
                ("notes.txt", "edit", "harmless"),
                ("blobs/.tmp-1-2", "edit", "harmless"),
                ("blobs/.tmp-1-2", "link", "harmless"),
                (".tmp-x", "link", "harmless"),
            ]
        )
        del path
        return f"{how} {name}", partial(self._replace, name, how, b"x"), kind

    def _replace(self, name: str, how: str, data: bytes, copy: Path) -> None:
        """Put something else in the place of a file or folder of the copy."""
        path = copy / name
        secret = self.secrets / name
        if name == "manifest.json":
            secret = self.secrets / f"{'padded' if b'mask' in path.read_bytes() else 'exact'}.json"
        elif not secret.exists():
            secret = self.secrets / "secret"
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        match how:
            case "edit":
                path.write_bytes(data)
            case "link":
                path.symlink_to(secret)
            case "hard link":
                path.hardlink_to(secret)
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "empty":
                path.touch()


def made_up(session: Session, size: int) -> dict[str, Any]:
    """Make inputs for whatever the manifest says: every open axis has this size."""
    feeds = {}
    for spec in session.signature.inputs:
        shape = [min(dim, 64) if isinstance(dim, int) else size for dim in spec.dims or ()]
        try:
            feeds[spec.name] = np.ones(shape, numpy_dtype(spec.dtype))
        except (TypeError, ValueError, KeyError):
            feeds[spec.name] = np.ones(shape, np.float32)
    return feeds
