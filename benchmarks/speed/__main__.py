"""Print one table: ours against the peers and against the floor, in turns, median and range."""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from . import __doc__ as about
from .cases import BATCHES, BRIDGES, CHOSEN, LENGTHS, PRECISIONS, SIZES, Case, cases
from .commands import cold
from .peers import PACKAGES, installed
from .table import FLOOR, OURS, Row, best, spread, table
from .worker import ROOT, Worker

UPDATES = 5
"""Of one contestant before the next has its turn: training does not wait between two updates."""


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", choices=[*SIZES], default="cpu")
    parser.add_argument(
        "--threads", type=int, default=2, help="of the CPU, for each contestant in its turn"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--size", nargs="+", choices=[*SIZES["cpu"]], help="hidden size and vocabulary"
    )
    parser.add_argument(
        "--shape", nargs="+", metavar="BATCH×LENGTH", help="such as 64x25; with --size"
    )
    parser.add_argument(
        "--all", action="store_true", help="every size, batches 1, 32, 256 and lengths 10, 30, 100"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="MEASUREMENT", help="training, greedy, beam, cold (commands)"
    )
    parser.add_argument(
        "--precision", nargs="+", help="float32, tf32, bf16, fp16, int8; see --device"
    )
    parser.add_argument("--bridge", nargs="+", choices=BRIDGES, default=["additive"])
    parser.add_argument(
        "--tokens", type=int, default=40, help="that decoding outputs for each sentence"
    )
    parser.add_argument(
        "--batches",
        type=int,
        default=1,
        help="that are decoded in a turn, as of a file; not on cuda",
    )
    parser.add_argument(
        "--src", nargs="+", type=Path, default=[], help="folders src of other versions of sixjars"
    )
    parser.add_argument(
        "--peer", nargs="*", choices=[*PACKAGES], default=[*PACKAGES], help="all, when not given"
    )
    parser.add_argument(
        "--peers",
        type=Path,
        default=ROOT / "build" / "peers",
        help="where the peers are, or will be",
    )
    parser.add_argument(
        "--no-cold", action="store_true", help="leave out what commands take from a cold start"
    )
    parser.add_argument(
        "--profile", action="store_true", help="where the time goes, in place of the table"
    )
    return parser.parse_args()


def shapes_of(given: argparse.Namespace) -> list[tuple[str, int, int]]:
    """Sizes, batches and lengths that were asked for, or the chosen ones."""
    if given.all:
        return [
            (size, batch, length)
            for size, batch, length in product(SIZES[given.device], BATCHES, LENGTHS)
        ]
    if given.shape:
        pairs = [tuple(map(int, shape.replace("×", "x").split("x"))) for shape in given.shape]
        return [(size, batch, length) for size in given.size or ["base"] for batch, length in pairs]
    return [shape for shape in CHOSEN[given.device] if given.size is None or shape[0] in given.size]


def measured(workers: Sequence[Worker], wanted: Sequence[Case], rounds: int) -> list[Row]:
    """Every case, all contestants in turns; those that have no such thing are left out."""
    rows = []
    for case in wanted:
        row, turns = Row(case), UPDATES if case.measurement == "training" else 1
        able = [worker for worker in workers if worker.ask("time", case) is not None]
        for _ in range(rounds):
            for worker in able:
                row.times.setdefault(worker.name, []).append(worker.ask("time", case, turns))
        taken = ", ".join(f"{name} {spread(times)} ms" for name, times in row.times.items())
        print(
            f"{case.measurement}, {case.size}, {case.batch}×{case.length}, {case.precision}: {taken}",
            file=sys.stderr,
        )
        rows += [row] if OURS in row.times else []
    return rows


def main() -> None:
    """Start the contestants, measure, print."""
    given = options()
    peers = {name: given.peers / name for name in given.peer if installed(name, given.peers / name)}
    sources = {OURS: ROOT / "src"}
    sources |= {
        (path.resolve().parent if path.name == "src" else path).name: path.resolve()
        for path in given.src
    }
    workers = [
        Worker(name, "ours", path=path, threads=given.threads) for name, path in sources.items()
    ]
    workers += [
        Worker(name, name, path=path, threads=given.threads) for name, path in peers.items()
    ]
    floor = Worker(FLOOR, "floor", path=None, threads=given.threads)
    precisions = given.precision or [*PRECISIONS[given.device]]
    of_search = {"tokens": given.tokens, "batches": given.batches if given.device == "cpu" else 1}
    wanted = [
        case
        for case in cases(given.device, shapes_of(given), precisions, given.bridge, **of_search)
        if given.only is None or case.measurement.split()[0] in given.only
    ]
    try:
        if wanted:
            report(given, wanted, [*workers, floor])
    finally:
        for worker in [*workers, floor]:
            worker.close()
    if given.device == "cpu" and not given.no_cold and not given.profile:
        print("\n" + "\n".join(cold(sources, peers, given.rounds)))


def report(given: argparse.Namespace, wanted: Sequence[Case], workers: Sequence[Worker]) -> None:
    """The tables, or the profiles."""
    others = [worker.name for worker in workers if worker.name not in {OURS, FLOOR}]
    if given.profile:
        for case, worker in product(wanted, workers):
            if worker.ask("time", case) is not None:
                print(
                    f"\n{worker.name}: {case.measurement}, {case.size}, {case.batch}×{case.length}, {case.precision}"
                )
                print(worker.ask("profile", case))
        return
    machine = workers[-1].ask("machine", wanted[0])
    print(
        f"{machine['device']}, torch {machine['torch']}, copies {machine['bandwidth'] / 1e9:,.0f} GB/s; ",
        end="",
    )
    print(f"median of {given.rounds} rounds (least to most)\n", flush=True)
    rows = measured(workers, wanted, given.rounds)
    print("\n".join(table(rows, others, machine["bandwidth"])))
    print("\nEach at its best precision:\n")
    print("\n".join(best(rows, others)))


if __name__ == "__main__":
    main()
