"""A run of one bucket as one CUDA graph: one launch instead of one for each kernel."""

from __future__ import annotations

from typing import Any


def capture(context: Any, stream: Any) -> Any:
    """Capture a run of a context whose sizes and addresses are set, and which ran once since they were.

    Nothing is executed. Other threads go on using the device meanwhile.

    Args:
        context: the ``IExecutionContext``.
        stream: of its lane; nothing may be pending there.

    Returns:
        The graph, to be launched on that stream; None when the engine or the driver does not allow it.
    """
    if hasattr(context, "is_stream_capturable") and not context.is_stream_capturable(int(stream.handle)):
        return None
    builder = stream.create_graph_builder()
    try:
        builder.begin_building("thread_local")
        try:
            accepted = context.execute_async_v3(int(stream.handle))
        finally:
            builder.end_building()
        return builder.complete() if accepted else None
    except Exception:  # noqa: BLE001 (whatever was refused: the run without a graph is right as well)
        return None
    finally:
        builder.close()
