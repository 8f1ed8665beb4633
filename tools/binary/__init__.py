"""The standalone program ``trtc-bench``: its entry, and how it is built (``make binary``)."""
