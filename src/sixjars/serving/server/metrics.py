"""Counters of a server in the text format of Prometheus."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, final

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
HELP: Final = {
    "sixjars_requests_total": "counter Requests that were answered, by path and status.",
    "sixjars_request_seconds": "histogram Seconds from the head of a request to its answer.",
    "sixjars_inputs_total": "counter Inputs that were computed.",
    "sixjars_batch_inputs": "histogram Inputs of a batch.",
    "sixjars_compute_seconds_total": "counter Seconds of computing batches.",
    "sixjars_reloads_total": "counter Reloads of a run, by outcome.",
    "sixjars_waiting_inputs": "gauge Inputs that wait.",
    "sixjars_requests_in_progress": "gauge Requests that are not answered yet.",
}
Labels = tuple[tuple[str, str], ...]


@final
class Metrics:
    """Counters and histograms; only the thread of the event loop touches them.

    >>> counts = Metrics()
    >>> counts.add("sixjars_inputs_total", 3, model="en-hi")
    >>> [line for line in counts.text({}).splitlines() if not line.startswith("#")]
    ['sixjars_inputs_total{model="en-hi"} 3']
    """

    def __init__(self) -> None:
        self._counters: dict[tuple[str, Labels], float] = defaultdict(float)
        self._histograms: dict[tuple[str, Labels], Counter[float]] = defaultdict(Counter)
        self._sums: dict[tuple[str, Labels], float] = defaultdict(float)

    def add(self, name: str, count: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self._counters[name, tuple(labels.items())] += count

    def see(self, name: str, value: float, bounds: tuple[float, ...], **labels: str) -> None:
        """Add a value to a histogram."""
        key = name, tuple(labels.items())
        bound = next((bound for bound in bounds if value <= bound), float("inf"))
        self._histograms[key][bound] += 1
        self._sums[key] += value

    def text(self, gauges: Mapping[tuple[str, Labels], float]) -> str:
        """All counters and histograms, and gauges that are measured now, as a text."""
        lines: dict[str, list[str]] = defaultdict(list)
        for (name, labels), value in [*self._counters.items(), *gauges.items()]:
            lines[name].append(f"{name}{_labels(labels)} {value:.15g}")
        for (name, labels), counts in self._histograms.items():
            lines[name] += self._histogram(name, labels, counts)
        text = ""
        for name, values in lines.items():
            kind, _, about = HELP[name].partition(" ")
            head = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            text += "".join(f"{line}\n" for line in (*head, *values))
        return text

    def _histogram(self, name: str, labels: Labels, counts: Counter[float]) -> Iterator[str]:
        total = 0
        for bound in SECONDS if name.endswith("_seconds") else SIZES:
            total += counts[bound]
            yield f"{name}_bucket{_labels((*labels, ('le', f'{bound:g}')))} {total}"
        yield f"{name}_bucket{_labels((*labels, ('le', '+Inf')))} {counts.total()}"
        yield f"{name}_sum{_labels(labels)} {self._sums[name, labels]:.15g}"
        yield f"{name}_count{_labels(labels)} {counts.total()}"


def _labels(labels: Labels) -> str:
    marks = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    inside = ",".join(f'{key}="{value.translate(marks)}"' for key, value in labels)
    return f"{{{inside}}}" if inside else ""
