"""Tests and measurements that need a GPU: ``make test-gpu`` and ``make gpu-report``.

Without a driver every test is skipped, with the reason that the driver or its absence gives, and nothing else.
"""
