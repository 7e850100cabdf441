"""The metrics page: counters, histograms and gauges of one server, kept by prometheus_client."""

from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


@final
class Metrics:
    """The metrics of one server, in a registry of its own: a process may have several servers.

    >>> metrics = Metrics()
    >>> metrics.inputs.labels(model="en-hi").inc(3)
    >>> 'sixjars_inputs_total{model="en-hi"} 3.0' in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "sixjars_requests_total",
            "Requests that were answered, by path and status.",
            ["path", "status"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "sixjars_request_seconds",
            "Seconds from the head of a request to its answer.",
            ["path"],
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
            registry=registry,
        )
        self.inputs = Counter(
            "sixjars_inputs_total", "Inputs that were computed.", ["model"], registry=registry
        )
        self.batch_inputs = Histogram(
            "sixjars_batch_inputs",
            "Inputs of a batch.",
            ["model"],
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
            registry=registry,
        )
        self.compute_seconds = Counter(
            "sixjars_compute_seconds_total",
            "Seconds of computing batches.",
            ["model"],
            registry=registry,
        )
        self.reloads = Counter(
            "sixjars_reloads_total",
            "Reloads of a run, by outcome.",
            ["model", "ok"],
            registry=registry,
        )
        self.waiting_inputs = Gauge(
            "sixjars_waiting_inputs", "Inputs that wait.", ["model"], registry=registry
        )
        self.requests_in_progress = Gauge(
            "sixjars_requests_in_progress",
            "Requests that are not answered yet.",
            registry=registry,
        )

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
