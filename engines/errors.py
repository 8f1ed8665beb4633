"""Errors of the layer between compiler and runtime."""

from __future__ import annotations

from trtc.profiles import CheckError, TrtcError


class BundleError(CheckError):
    """A bundle that is truncated, altered, half-written or from another version. Exit code 1."""


class EngineError(TrtcError):
    """A target failed while it ran; its own message is part of the text. Exit code 1."""

    exit_code = 1


class CancelledError(EngineError):
    """The call was cancelled by its caller. Exit code 1."""
