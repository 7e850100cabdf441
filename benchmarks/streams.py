"""How long 16 streams of `sixjars serve` take that come at once, beside one, and what /v1/predict takes meanwhile.

    python benchmarks/streams.py RUN INPUT ... [--length 200]

With `--length` every stream has exactly so many tokens. Times are milliseconds from the request to its first token and
to its end. Those of /v1/predict are of one client that asks for one input at a time, with 2 ms between two requests.
"""

import argparse
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median, quantiles
from threading import Event, Thread
from time import perf_counter, sleep
from typing import Any

from sixjars import Client

STREAMS = 16
Ask = Callable[[int], tuple[float, float]]


@contextmanager
def served(run: str) -> Iterator[str]:
    """The address of a server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [
        sys.executable,
        "-m",
        "sixjars",
        "serve",
        run,
        "--port",
        str(port),
        "--device",
        "cpu",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("serving at"), line
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.stderr.close()
        process.wait(60)


def streamed(address: str, text: str, search: dict[str, Any]) -> tuple[float, float]:
    """Milliseconds to the first token of a stream, and to its end."""
    with Client(address) as client:
        began = perf_counter()
        times = [1000 * (perf_counter() - began) for _ in client.stream(text, **search)]
    return times[0], times[-1]


def together(count: int, ask: Ask, turns: int) -> list[tuple[float, float]]:
    """So many streams at once, several times."""
    with ThreadPoolExecutor(count) as threads:
        return [one for _ in range(turns) for one in threads.map(ask, range(count))]


@contextmanager
def predicting(address: str, text: str) -> Iterator[list[float]]:
    """The milliseconds of each prediction that one client asks for meanwhile."""
    found, ending = list[float](), Event()

    def ask() -> None:
        with Client(address) as client:
            while not ending.is_set():
                began = perf_counter()
                client.predict([text])
                found.append(1000 * (perf_counter() - began))
                sleep(0.002)

    thread = Thread(target=ask)
    thread.start()
    try:
        yield found
    finally:
        ending.set()
        thread.join()


def printed(name: str, *figures: float) -> None:
    """A line of a table."""
    print(f"| {name} | {' | '.join(f'{figure:,.1f}' for figure in figures)} |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--length", type=int)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    length, inputs = options.length, options.inputs
    search = (
        {} if length is None else {"kind": "greedy", "min_length": length - 1, "max_length": length}
    )
    with served(options.run) as address:

        def ask(at: int) -> tuple[float, float]:
            return streamed(address, inputs[at % len(inputs)], search)

        together(1, ask, 5)  # to get warm
        print(
            "| streams | first token, p50 ms | longest ms | end, p50 ms | longest ms |\n| --- | --- | --- | --- | --- |"
        )
        for count in (1, STREAMS):
            firsts, ends = zip(*together(count, ask, options.turns), strict=True)
            printed(str(count), median(firsts), max(firsts), median(ends), max(ends))
        print("\n| /v1/predict | p50 ms | p99 ms | longest ms |\n| --- | --- | --- | --- |")
        with predicting(address, inputs[0]) as alone:
            sleep(2.0)
        with predicting(address, inputs[0]) as beside:
            together(STREAMS, ask, 2 * options.turns)
        for name, found in (("alone", alone), (f"beside {STREAMS} streams", beside)):
            cut = quantiles(found, n=100, method="inclusive")
            printed(name, cut[49], cut[98], max(found))


if __name__ == "__main__":
    main()
