"""TensorRT and TensorRT for RTX: one engine with an optimization profile for each bucket."""
