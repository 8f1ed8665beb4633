"""Private copies of the plug-in libraries of a build, made once: what is hashed is what is loaded and kept."""

from __future__ import annotations

import shutil
from dataclasses import replace
from hashlib import file_digest
from typing import TYPE_CHECKING

from trtc.profiles import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.compiler.options import BuildOptions


def with_private_plugins(options: BuildOptions, folder: Path) -> BuildOptions:
    """Copy the plug-in libraries; links are followed, so that ``libx.so`` may lead to ``libx.so.1``.

    Args:
        options: of the build.
        folder: private; made when there is something to copy.

    Returns:
        The options with the copies in place of what was given.

    Raises:
        UsageError: for a file that cannot be read, that is no file, or that is given twice.
    """
    copies: dict[str, Path] = {}
    for i, given in enumerate(options.builder.plugins):
        copy = folder / str(i) / given.name
        copy.parent.mkdir(parents=True)
        _copy(given, copy)
        digest = plugin_digest(copy)
        if digest in copies:
            raise UsageError(f"--plugin {given}: this library was given twice; name each library once")
        copies[digest] = copy
    return replace(options, builder=replace(options.builder, plugins=tuple(copies.values())))


def plugin_digest(library: Path) -> str:
    """Return the SHA-256 of a library, which names it in the bundle and counts in the key of a build."""
    with library.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _copy(given: Path, copy: Path) -> None:
    try:
        if not given.is_file():  # a pipe would be waited for
            given.stat()
            raise UsageError(f"--plugin {given}: it is no file; give a shared library (.so)")
        shutil.copyfile(given, copy)
    except OSError as error:
        raise UsageError(
            f"--plugin {given}: cannot be read ({error.strerror}); give a shared library (.so) that exports getCreators"
        ) from error
