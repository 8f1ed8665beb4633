"""Hypothesis without a deadline: these tests assert behaviour, never time."""

from hypothesis import settings

settings.register_profile("trtc-profiles", deadline=None, derandomize=True)
settings.load_profile("trtc-profiles")
