"""Metrics (the sixth jar): outcomes in, one number with its signature out for each metric.

No library of a metric is imported here; each metric imports its own when it is first computed.
"""

from sixjars.evaluation.metrics.attention import focus_of as focus_of
from sixjars.evaluation.metrics.attention import rationale_weight as rationale_weight
from sixjars.evaluation.metrics.classes import ONE_LABEL as ONE_LABEL
from sixjars.evaluation.metrics.classes import ClassRow as ClassRow
from sixjars.evaluation.metrics.classes import Confusion as Confusion
from sixjars.evaluation.metrics.classes import confusion as confusion
from sixjars.evaluation.metrics.classes import per_class as per_class
from sixjars.evaluation.metrics.ngrams import caption_words as caption_words
from sixjars.evaluation.metrics.ngrams import why_zero as why_zero
from sixjars.evaluation.metrics.outcome import Interval as Interval
from sixjars.evaluation.metrics.outcome import Metric as Metric
from sixjars.evaluation.metrics.outcome import Outcome as Outcome
from sixjars.evaluation.metrics.outcome import RationaleWeight as RationaleWeight
from sixjars.evaluation.metrics.outcome import Score as Score
from sixjars.evaluation.metrics.outcome import Sums as Sums
from sixjars.evaluation.metrics.outcome import rounded as rounded
from sixjars.evaluation.metrics.table import METRICS as METRICS
from sixjars.evaluation.metrics.table import metric_named as metric_named
from sixjars.evaluation.metrics.table import missed_of as missed_of
from sixjars.evaluation.metrics.table import score as score
from sixjars.evaluation.metrics.table import value_alone as value_alone
