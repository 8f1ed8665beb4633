"""The defaults that the command shows, read from the one place where they are written."""

from __future__ import annotations

from trtc.compiler.options import BuildOptions

DEFAULTS = BuildOptions()
