"""Comparison of bundles with what they should equal."""
