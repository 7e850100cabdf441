"""Jar 6, the measuring: outcomes in, one signed number out for each metric.

Nothing heavy loads here; each metric imports its library when it is first computed.
"""

from sixjars.evaluation.metrics.outcome import Metric, Outcome, Score
from sixjars.evaluation.metrics.table import METRICS, metric_named, names, score

__all__ = ["METRICS", "Metric", "Outcome", "Score", "metric_named", "names", "score"]
