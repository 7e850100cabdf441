"""How fast search is, with the base model on random sentences: this version against another one, in turns.

python benchmarks/decoding.py --other ../older/src
python benchmarks/decoding.py --device cuda --batch 256 --precision bf16

Each version has a process of its own that makes the same model (bi-GRU, additive attention) and sources, and waits. A
turn lets one after the other decode one batch, so that whatever else the machine does slows both down. Outputs always
have the full length, since `<stop>` is held back. Seconds are those of the CPU on a CPU, of the clock on other devices.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"kind": "greedy"},
    "beam 5": {"kind": "beam", "width": 5},
    "sample top 10": {"kind": "sample", "top_k": 10},
}


def network_of(given: argparse.Namespace) -> Any:
    """An untrained model whose `<stop>` never comes, on the device and in the precision that are wanted."""
    import torch

    from sixjars import Attention, SequenceDecoder, TextEncoder, WordEmbedding
    from sixjars.flow.special import STOP
    from sixjars.model.build import Network

    torch.manual_seed(0)
    size, words = given.size, given.vocabulary
    read, written = (WordEmbedding(vocabulary=words, size=size // 2) for _ in "ab")
    encoder = TextEncoder(embedding=read, size=size, direction="both")
    bridge = Attention(source_size=2 * size, state_size=size, size=size)
    decoder = SequenceDecoder(bridge=bridge, embedding=written, size=size)
    network = Network(encoder, decoder).eval()
    with torch.no_grad():
        decoder.output.bias[STOP] = -1e4
    if find_spec("sixjars.model.precision") is None:  # an older version
        return network.to(given.device)
    from sixjars.model.precision import in_precision

    return in_precision(network.to(given.device), given.precision)


def decoded(network: Any, given: argparse.Namespace, search: dict[str, Any]) -> list[Any]:
    """Encode and search one batch."""
    import torch

    from sixjars.evaluation.score import answers
    from sixjars.flow.values import Padded
    from sixjars.recipe.sections import SearchSettings

    chance = torch.Generator().manual_seed(1)
    values = torch.randint(4, given.vocabulary, (given.batch, given.length), generator=chance)
    source = Padded(values, torch.ones_like(values, dtype=torch.bool)).to(given.device)
    settings = SearchSettings.model_validate({**search, "max_length": given.tokens})
    with torch.inference_mode():
        encoded = network.encode({"source": source})
    return answers(network, encoded, settings, seeds=range(given.batch), attention=False)


def serve(given: argparse.Namespace) -> None:
    """Decode once for each line of stdin, which names a search, and print the seconds and the number of tokens."""
    import torch

    torch.set_num_threads(given.threads)
    network = network_of(given)
    clock = time.process_time if given.device == "cpu" else time.perf_counter
    for line in sys.stdin:
        began = clock()
        found = decoded(network, given, SEARCHES[line.strip()])
        took = clock() - began
        print(json.dumps([took, [list(few[0].tokens) for few in found]]), flush=True)


def started(source: Path) -> subprocess.Popen[str]:
    """A version that waits for the names of searches."""
    command = [sys.executable, __file__, *sys.argv[1:], "--serve"]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def asked(version: subprocess.Popen[str], search: str) -> tuple[float, list[list[int]]]:
    """The seconds of one turn, and the best output for each source."""
    assert version.stdin is not None
    assert version.stdout is not None
    version.stdin.write(f"{search}\n")
    version.stdin.flush()
    took, found = json.loads(version.stdout.readline())
    return took, found


def table(given: argparse.Namespace) -> None:
    """Print milliseconds of both versions, and the median ratio with its spread."""
    versions = [started(Path(__file__).parents[1] / "src")]
    versions += [started(given.other)] if given.other else []
    print(f"{given.batch} sentences of {given.length} words, {given.tokens} tokens each, {given.precision}")
    print(f"{'search':14} {'ms':>8} {'other':>8} {'ratio':>6}  spread     same tokens")
    for name in SEARCHES:
        first = [asked(version, name) for version in versions]  # not counted: what is captured, and caches
        same = sum(one == other for one, other in zip(first[0][1], first[-1][1], strict=True)) / given.batch
        turns = [[asked(version, name)[0] for version in versions] for _ in range(given.turns)]
        own, other = (statistics.median(turn[at] for turn in turns) * 1e3 for at in (0, -1))
        ratios = sorted(turn[-1] / turn[0] for turn in turns)
        spread = f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
        print(f"{name:14} {own:8.1f} {other:8.1f} {statistics.median(ratios):6.2f}  {spread:10} {same:.0%}", flush=True)
    for version in versions:
        assert version.stdin is not None
        version.stdin.close()
        version.wait()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--other", type=Path, help="the folder src of another version")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="32")
    parser.add_argument("--threads", type=int, default=1)
    sizes = {"--size": 512, "--vocabulary": 8000, "--batch": 64, "--length": 25, "--tokens": 40, "--turns": 5}
    for name, number in sizes.items():
        parser.add_argument(name, type=int, default=number)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    (serve if given.serve else table)(given)


if __name__ == "__main__":
    main()
