"""Fuzz with coverage feedback (atheris): ``python tests/fuzz/coverage_guided.py manifest -runs=100000 -seed=1``.

Targets: ``manifest``, ``texts``, ``importer``. Options with one dash are libFuzzer's. Inputs that raise anything but
our errors are written to ``-artifact_prefix``, and the process ends with a code other than 0.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import tempfile
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import atheris

PACKAGES = {"manifest": ("engines", "profiles"), "texts": ("profiles",), "importer": ("compiler",)}
target = sys.argv.pop(1)


class Folders:
    """Finds modules of ours for atheris, whose import hook knows folders but not the hook of an editable install."""

    root = Path(__file__).resolve().parents[2]

    @classmethod
    def find_spec(cls, name: str, path: object = None, other: object = None) -> ModuleSpec | None:
        del path, other
        parts = name.split(".")
        if parts[0] != "trtc" or len(parts) == 1:
            return None
        return PathFinder.find_spec(name, [str(cls.root.joinpath(*parts[1:-1]))])


sys.meta_path.insert(0, Folders)
with atheris.instrument_imports(include=[f"trtc.{name}" for name in PACKAGES[target]]):
    if target == "manifest":
        from manifests import Manifests as Target
    elif target == "texts":
        from texts import READERS, ShapeOptions  # noqa: F401
        from texts import Texts as Target
    else:
        from importer import Importer as Target

from mutations import edited_bytes, edited_json  # noqa: E402 (after what is instrumented)
from seeds import bundle  # noqa: E402

from trtc.engines.checksum import sealed  # noqa: E402
from trtc.engines.errors import BundleError  # noqa: E402

work = Path(tempfile.mkdtemp(prefix="trtc-fuzz-")).resolve()
corpus = work / "corpus"
corpus.mkdir()
made = [bundle(work, kind) for kind in ("padded", "exact")] if target == "manifest" else work
subject = Target(0, made)
for number in range(200):
    (corpus / str(number)).write_bytes(subject.saved(subject.case(number)))


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Half of the mutations are libFuzzer's own, half know what the bytes mean."""
    rng = random.Random(seed)  # noqa: S311 (repeatable, not secret)
    if rng.random() < 0.5:
        return bytes(atheris.Mutate(data, max_size))
    with contextlib.suppress(ValueError, RecursionError):
        if target == "manifest":
            json.loads(data)
            return edited_json(data, rng)[:max_size]
    return edited_bytes(data, rng)[:max_size]


def try_one(data: bytes) -> None:
    """Give one input to the target; what it raises is a finding."""
    if target == "texts":
        name, _, text = data.decode("utf-8", "surrogatepass" if data.isascii() else "replace").partition(" ")
        subject.run((name if name in READERS else list(READERS)[len(name) % len(READERS)], text.replace("@", "")))
    elif target == "manifest":
        with contextlib.suppress(BundleError):
            data = sealed(data)  # as a forger would, else nothing but the checksum is ever reached
        subject.run((data, True))
    else:
        subject.run(data)


atheris.Setup([sys.argv[0], str(corpus), *sys.argv[1:]], try_one, custom_mutator=mutate)
atheris.Fuzz()
