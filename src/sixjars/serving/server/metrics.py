"""The metrics page: counters, histograms and gauges of one server, kept by prometheus_client."""

from functools import partial
from typing import Final, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@final
class ServerMetrics:
    """The metrics of one server, in a registry of its own: a process may have several servers.

    >>> metrics = ServerMetrics()
    >>> metrics.inputs.labels(model="en-hi").inc(3)
    >>> 'sixjars_inputs_total{model="en-hi"} 3.0' in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        about = "Requests that were answered, by path and status."
        self.requests = counter("sixjars_requests_total", about, ["path", "status"])
        about = "Seconds from the head of a request to its answer."
        self.request_seconds = histogram(
            "sixjars_request_seconds", about, ["path"], buckets=SECONDS
        )
        self.inputs = counter("sixjars_inputs_total", "Inputs that were computed.", ["model"])
        self.batch_inputs = histogram(
            "sixjars_batch_inputs", "Inputs of a batch.", ["model"], buckets=SIZES
        )
        about = "Seconds of computing batches."
        self.compute_seconds = counter("sixjars_compute_seconds_total", about, ["model"])
        about = "Reloads of a run, by outcome."
        self.reloads = counter("sixjars_reloads_total", about, ["model", "ok"])
        self.waiting_inputs = gauge("sixjars_waiting_inputs", "Inputs that wait.", ["model"])
        about = "Requests that are not answered yet."
        self.requests_in_progress = gauge("sixjars_requests_in_progress", about)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
