"""How many requests a second `sixjars serve` answers, and how long each takes: 1, 8 and 32 clients.

    python benchmarks/serving.py RUN [INPUT ...]

Each count of clients is measured with batches, and with one call at a time (`--batch 1`), in a server process of its
own; they take turns. A client is a thread with one raw socket that asks as soon as it is answered: a library for HTTP
would be slower than the server.

With `--soak SECONDS` one server is kept at saturation, and every request is accounted for: answered 200, refused 503,
or lost. A small queue makes sure that some are refused. Then the server is ended under the same load, by SIGTERM and
by SIGKILL, and started again; there a request may also be `cut`: its connection ended, which its sender sees. `silent`
is a request that had neither an answer nor an end.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from threading import Thread
from time import monotonic, sleep
from typing import final

SATURATED = ["--queue", "24", "--max-inputs", "4"]
"""A server that has to refuse some of what 32 clients of four inputs ask."""
PATIENCE = 60.0
"""Seconds without an answer after which a request is silent."""


@final
@dataclass(frozen=True)
class Asked:
    """One request: when it was sent, how long it took, and how it ended."""

    began: float
    seconds: float
    status: str


@final
class Caller:
    """One client: the same few requests again and again over one connection, and over another where that ends."""

    def __init__(self, port: int, inputs: list[str], each: int = 1) -> None:
        self.port, self.asked = port, list[Asked]()
        groups = [inputs[at : at + each] for at in range(0, len(inputs), each)]
        self.requests = [self._request(group) for group in groups]

    @staticmethod
    def _request(inputs: list[str]) -> bytes:
        body = json.dumps({"inputs": inputs}).encode()
        head = "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def ask(self, until: float) -> None:
        """Until that time; where there is no server, again and again until there is one."""
        while monotonic() < until:
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
            except OSError:
                sleep(0.05)
                continue
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._ask_on(connection, until)

    def _ask_on(self, connection: socket.socket, until: float) -> None:
        while (began := monotonic()) < until:
            status, last = "silent", True
            with suppress(TimeoutError):
                try:
                    connection.sendall(self.requests[len(self.asked) % len(self.requests)])
                    status, last = answered(connection)
                except ConnectionError:
                    status = "cut"
            self.asked.append(Asked(began, monotonic() - began, status))
            if status == "503":
                sleep(0.05)
            if last:
                return


def answered(connection: socket.socket) -> tuple[str, bool]:
    """The status of the next answer, which is read to its end, and whether the connection ends with it."""
    whole = b""
    while b"\r\n\r\n" not in whole:
        whole += _some(connection)
    head, _, body = whole.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    [length] = [
        int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")
    ]
    while len(body) < length:
        body += _some(connection)
    return head.split(b" ", 2)[1].decode(), b"connection: close" in lines


def _some(connection: socket.socket) -> bytes:
    found = connection.recv(1 << 16)
    if not found:
        raise ConnectionResetError
    return found


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@final
class Server:
    """`sixjars serve` in a process of its own."""

    def __init__(self, run: str, *options: str, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        command = [
            sys.executable,
            "-m",
            "sixjars",
            "serve",
            f"run={run}",
            "--port",
            str(self.port),
            *options,
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("serving at"), line

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """The exit code."""
        os.kill(self.process.pid, how)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return self.process.wait(60)

    @property
    def megabytes(self) -> float:
        """Memory that it holds (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) / 1024


@contextmanager
def server(run: str, *options: str) -> Iterator[Server]:
    """A server that is there for a while."""
    made = Server(run, *options)
    try:
        yield made
    finally:
        made.end()


@contextmanager
def under_load(
    port: int, inputs: list[str], *, clients: int, seconds: float, each: int = 1
) -> Iterator[list[Asked]]:
    """So many clients for so long, each with another order of the inputs; what they asked is there at the end."""
    callers = [
        Caller(port, inputs[at % len(inputs) :] + inputs[: at % len(inputs)], each)
        for at in range(clients)
    ]
    until, found = monotonic() + seconds, list[Asked]()
    threads = [Thread(target=caller.ask, args=[until]) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        for thread in threads:
            thread.join()
        found += [one for caller in callers for one in caller.asked]


def load(port: int, inputs: list[str], clients: int, seconds: float) -> list[Asked]:
    """What so many clients asked."""
    with under_load(port, inputs, clients=clients, seconds=seconds) as found:
        pass
    return found


def milliseconds(asked: list[Asked]) -> tuple[float, float, float]:
    """What half and 99 of 100 of those that were answered took at most, and the longest."""
    times = [1000 * one.seconds for one in asked if one.status == "200"]
    cut = quantiles(times, n=100)
    return cut[49], cut[98], max(times)


def measured(
    port: int, inputs: list[str], clients: int, seconds: float
) -> tuple[float, float, float]:
    """Requests a second, and the milliseconds that half and 99 of 100 of them took at most."""
    load(port, inputs, clients, min(1.0, seconds))  # to get warm
    asked = load(port, inputs, clients, seconds)
    assert {one.status for one in asked} == {"200"}
    return len(asked) / seconds, *milliseconds(asked)[:2]


def table(run: str, inputs: list[str], options: argparse.Namespace) -> None:
    """Print a line for each count of clients; ways take turns, so that a busy machine is unkind to both."""
    ways = {"batches": [], "one call at a time": ["--batch", "1", "--max-inputs", "1"]}
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    with ExitStack() as stack:
        servers = {
            way: stack.enter_context(server(run, *more, "--device", options.device))
            for way, more in ways.items()
        }
        for clients in options.clients * options.rounds:
            for way, one in servers.items():
                found.setdefault((way, clients), []).append(
                    measured(one.port, inputs, clients, options.seconds)
                )
    middle = {
        key: [median(column) for column in zip(*values, strict=True)]
        for key, values in found.items()
    }
    print(
        "| clients | way | requests a second | p50 ms | p99 ms |\n| --- | --- | --- | --- | --- |"
    )
    for clients in options.clients:
        for way in ways:
            speed, half, most = middle[way, clients]
            print(f"| {clients} | {way} | {speed:.0f} | {half:.1f} | {most:.1f} |")
        (fast, half, short), (slow, other, long) = (middle[way, clients] for way in ways)
        print(
            f"| {clients} | ratio | {fast / slow:.2f} × | {half / other:.2f} × | {short / long:.2f} × |"
        )


def soak(run: str, inputs: list[str], options: argparse.Namespace) -> None:
    """Saturation for long: all requests are answered or refused, the slowest stay bounded, and memory does not grow."""
    more = [*SATURATED, "--device", options.device]
    minutes = max(1, round(options.soak / 60))
    each = options.soak / minutes
    with server(run, *more) as one:
        began, memory = monotonic(), [one.megabytes]
        with under_load(one.port, inputs, clients=32, seconds=options.soak, each=4) as asked:
            for minute in range(1, minutes + 1):
                sleep(max(0.0, began + minute * each - monotonic()))
                memory.append(one.megabytes)
    print("| minute | answered | refused 503 | lost | p50 ms | p99 ms | longest ms | memory MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for minute in range(minutes):
        first = began + minute * each
        print(
            f"| {minute + 1} |",
            row([own for own in asked if first <= own.began < first + each], memory[minute + 1]),
        )
    print("| all |", row(asked, memory[-1]))
    print(f"before the first request: {memory[0]:.0f} MB")
    failed = sum(one.status not in ("200", "503") for one in asked)
    for how in (signal.SIGTERM, signal.SIGKILL):
        failed += ended(run, inputs, more, how)
    sys.exit(1 if failed else 0)


def row(asked: list[Asked], memory: float) -> str:
    """Cells of the table."""
    counts = Counter(one.status for one in asked)
    lost = counts.total() - counts["200"] - counts["503"]
    times = " | ".join(f"{value:.0f}" for value in milliseconds(asked))
    return f"{counts['200']:,} | {counts['503']:,} | {lost} | {times} | {memory:.0f} |"


def ended(run: str, inputs: list[str], more: list[str], how: signal.Signals) -> int:
    """End a server under load and start it again; how many requests had neither an answer nor an end.

    After SIGTERM those count too that were on their way long before it, and yet were cut.
    """
    one = Server(run, *more)
    with under_load(one.port, inputs, clients=32, seconds=20.0, each=4) as asked:
        sleep(5.0)
        told = monotonic()
        code = one.end(how)
        gone = monotonic()
        again = Server(run, *more, port=one.port)
        back = monotonic()
    again.end()
    counts = Counter(own.status for own in asked)
    waiting = [own for own in asked if own.began < told - 0.005 and own.began + own.seconds > told]
    late = sum(own.status == "200" and own.began > back for own in asked)
    print(
        f"{how.name}: exit code {code} after {gone - told:.1f} s, listening again {back - gone:.1f} s later; ",
        end="",
    )
    print(
        f"{dict(counts)}, of these waiting at the signal {dict(Counter(own.status for own in waiting))}, ",
        end="",
    )
    print(f"answered by the new server {late}")
    cut = sum(own.status == "cut" for own in waiting) if how == signal.SIGTERM else 0
    return counts["silent"] + cut


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="the folder of a run that reads texts")
    parser.add_argument("inputs", nargs="*", help="texts to ask for")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of which the middle is shown")
    parser.add_argument(
        "--soak", type=float, default=0.0, metavar="SECONDS", help="stay at saturation instead"
    )
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    usual = [
        "I am going home",
        "my sister is reading a book",
        "we live in a big city",
        "he drinks water",
    ]
    inputs = options.inputs or usual
    (soak if options.soak else table)(options.run, inputs, options)


if __name__ == "__main__":
    main()
