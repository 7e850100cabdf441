"""Jar 6, the measuring: outcomes in, one signed number out for each metric.

Nothing heavy loads here; each metric imports its library when it is first computed.
"""

from sixjars.evaluation.metrics.captions import caption_words
from sixjars.evaluation.metrics.classes import ClassRow, Confusion, confusion, per_class
from sixjars.evaluation.metrics.focus import Box, focus_of
from sixjars.evaluation.metrics.keys import key_weight
from sixjars.evaluation.metrics.outcome import KeyWeight, Metric, Outcome, Score
from sixjars.evaluation.metrics.table import METRICS, metric_named, names, score

__all__ = [
    "METRICS",
    "Box",
    "ClassRow",
    "Confusion",
    "KeyWeight",
    "Metric",
    "Outcome",
    "Score",
    "caption_words",
    "confusion",
    "focus_of",
    "key_weight",
    "metric_named",
    "names",
    "per_class",
    "score",
]
