"""Experiments at build time: what may be padded, which rows are independent, how sizes relate."""
