"""A folder for ``PYTHONPATH``: what Python runs when it starts, in every program that ``trtc exec`` starts."""
