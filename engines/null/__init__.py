"""The null backend: routing and memory without a target."""
