"""Readers of traffic, one file a format. All stream: memory does not grow with the number of requests."""

from trtc.profiles.traffic_files.read import Reading, ReadOptions, read_traffic

__all__ = ["ReadOptions", "Reading", "read_traffic"]
