"""The ``trtc`` command: one file a verb."""
