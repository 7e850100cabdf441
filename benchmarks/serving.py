"""How many requests a second `sixjars serve` answers, and how long each takes: 1, 8 and 32 clients.

    python benchmarks/serving.py RUN [INPUT ...]

Each count of clients is measured with batches, and with one call at a time (`--batch 1`), in a server process of its
own; they take turns. A client is a thread with one raw socket that asks as soon as it is answered: a library for HTTP
would be slower than the server. With `--soak SECONDS` one server is kept at saturation, and every request is accounted
for: answered 200, refused 503, or lost. A small queue makes sure that some are refused.
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
from contextlib import ExitStack, contextmanager
from statistics import median, quantiles
from threading import Thread
from time import monotonic, sleep
from typing import final


@final
class Caller:
    """One client: the same few requests again and again over one connection."""

    def __init__(self, port: int, inputs: list[str], each: int = 1) -> None:
        self.port, self.seconds, self.statuses = port, list[float](), Counter[str]()
        groups = [inputs[at : at + each] for at in range(0, len(inputs), each)]
        self.requests = [self._request(group) for group in groups]

    @staticmethod
    def _request(inputs: list[str]) -> bytes:
        body = json.dumps({"inputs": inputs}).encode()
        head = "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def ask(self, until: float) -> None:
        """Until that time; a connection that ends in the middle of an answer is a request that is lost."""
        at, connection = 0, socket.create_connection(("127.0.0.1", self.port), timeout=120)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (began := monotonic()) < until:
            try:
                connection.sendall(self.requests[at % len(self.requests)])
                status = answered(connection)
            except OSError as error:
                self.statuses[f"lost ({type(error).__name__})"] += 1
                return
            self.statuses[status] += 1
            if status == "200":
                self.seconds.append(monotonic() - began)
            elif status == "503":
                sleep(0.05)
            at += 1
        connection.close()


def answered(connection: socket.socket) -> str:
    """The status of the next answer, which is read to its end."""
    whole = connection.recv(1 << 16)
    while b"\r\n\r\n" not in whole:
        whole += _some(connection)
    head, _, body = whole.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    [length] = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
    while len(body) < length:
        body += _some(connection)
    return head.split(b" ", 2)[1].decode()


def _some(connection: socket.socket) -> bytes:
    found = connection.recv(1 << 16)
    if not found:
        raise ConnectionResetError
    return found


@contextmanager
def server(run: str, *options: str) -> Iterator[int]:
    """The port of a server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", "sixjars", "serve", f"run={run}", "--port", str(port), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("serving at"), line
    try:
        yield port
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(60)
        process.stderr.close()


def load(port: int, inputs: list[str], *, clients: int, seconds: float, each: int = 1) -> list[Caller]:
    """So many clients for so long, each with another order of the inputs."""
    callers = [Caller(port, inputs[at % len(inputs) :] + inputs[: at % len(inputs)], each) for at in range(clients)]
    until = monotonic() + seconds
    threads = [Thread(target=caller.ask, args=[until]) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return callers


def measured(port: int, inputs: list[str], clients: int, seconds: float) -> tuple[float, float, float]:
    """Requests a second, and the milliseconds that half and 99 of 100 of them took at most."""
    load(port, inputs, clients=clients, seconds=min(1.0, seconds))  # to get warm
    callers = load(port, inputs, clients=clients, seconds=seconds)
    times = [1000 * one for caller in callers for one in caller.seconds]
    assert set().union(*(caller.statuses for caller in callers)) == {"200"}
    cut = quantiles(times, n=100)
    return len(times) / seconds, cut[49], cut[98]


def table(run: str, inputs: list[str], options: argparse.Namespace) -> None:
    """Print a line for each count of clients; ways take turns, so that a busy machine is unkind to both."""
    ways = {"batches": [], "one call at a time": ["--batch", "1", "--max-inputs", "1"]}
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    with ExitStack() as stack:
        ports = {way: stack.enter_context(server(run, *more, "--device", options.device)) for way, more in ways.items()}
        for clients in options.clients * options.rounds:
            for way, port in ports.items():
                found.setdefault((way, clients), []).append(measured(port, inputs, clients, options.seconds))
    middle = {key: [median(column) for column in zip(*values, strict=True)] for key, values in found.items()}
    print("| clients | way | requests a second | p50 ms | p99 ms |\n| --- | --- | --- | --- | --- |")
    for clients in options.clients:
        for way in ways:
            speed, half, most = middle[way, clients]
            print(f"| {clients} | {way} | {speed:.0f} | {half:.1f} | {most:.1f} |")
        (fast, half, short), (slow, other, long) = (middle[way, clients] for way in ways)
        print(f"| {clients} | ratio | {fast / slow:.2f} × | {half / other:.2f} × | {short / long:.2f} × |")


def soak(run: str, inputs: list[str], options: argparse.Namespace) -> None:
    """Saturation for long: all requests are answered or refused, and the slowest stay bounded."""
    small = ["--queue", "24", "--max-inputs", "4", "--device", options.device]
    with server(run, *small) as port:
        callers = load(port, inputs, clients=32, seconds=options.soak, each=4)
    statuses = sum((caller.statuses for caller in callers), Counter[str]())
    times = sorted(1000 * one for caller in callers for one in caller.seconds)
    cut = quantiles(times, n=100)
    print(f"{options.soak:.0f} s, 32 clients of 4 inputs: {dict(statuses)}, ", end="")
    print(f"p50 {cut[49]:.1f} ms, p99 {cut[98]:.1f} ms, longest {times[-1]:.1f} ms")
    lost = statuses.total() - statuses["200"] - statuses["503"]
    print(f"lost: {lost}")
    sys.exit(1 if lost else 0)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a run that reads texts")
    parser.add_argument("inputs", nargs="*", help="texts to ask for")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of which the middle is shown")
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS", help="stay at saturation instead")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    usual = ["I am going home", "my sister is reading a book", "we live in a big city", "he drinks water"]
    inputs = options.inputs or usual
    (soak if options.soak else table)(options.run, inputs, options)


if __name__ == "__main__":
    main()
