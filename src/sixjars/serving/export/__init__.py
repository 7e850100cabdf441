"""Runs as graphs of ONNX, for programs without torch: `sixjars export`."""
