"""Prediction for very many rows: files are cut into parts, and each part is written whole or not at all."""
