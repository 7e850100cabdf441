"""Prediction with a run: requests, the predictor, predictions, and the lines or files of many of them."""
