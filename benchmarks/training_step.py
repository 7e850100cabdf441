"""How long one training step takes: forward, backward, clipping and Adam, on the size that the design page names.

Bidirectional GRU of 512, additive attention, a vocabulary of 10,000, batches of 256 pairs of 30 tokens.
Variants are timed in turn, several rounds of each, so that a busy machine slows all of them alike.

    python benchmarks/training_step.py --device cuda
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from sixjars import (
    Attention,
    Bridge,
    Encoder,
    EveryStep,
    InitialState,
    Network,
    Padded,
    SequenceDecoder,
    TextEncoder,
    WordEmbedding,
    token_loss,
)
from sixjars.learning.updates import optimizer_for
from sixjars.recipe.sections import LearningSettings

SIZE, VOCABULARY, WARM_UP = 512, 10_000, 2
BRIDGES: dict[str, Callable[[Encoder], Bridge]] = {
    "initial": lambda encoder: InitialState(summary_size=encoder.summary_size, state_size=SIZE),
    "every_step": lambda encoder: EveryStep(summary_size=encoder.summary_size, state_size=SIZE),
    "additive": lambda encoder: Attention(source_size=encoder.output_size, state_size=SIZE, size=SIZE),
    "dot": lambda encoder: Attention(source_size=encoder.output_size, state_size=SIZE, score="dot"),
    "general": lambda encoder: Attention(source_size=encoder.output_size, state_size=SIZE, score="general"),
}


def network(bridge: str, device: str) -> Network:
    """The model of the design page, with one bridge or another."""
    encoder = TextEncoder(
        embedding=WordEmbedding(vocabulary=VOCABULARY, size=SIZE),
        size=SIZE if bridge != "dot" else SIZE // 2,
        direction="both",
    )
    words = WordEmbedding(vocabulary=VOCABULARY, size=SIZE)
    return Network(encoder, SequenceDecoder(bridge=BRIDGES[bridge](encoder), embedding=words, size=SIZE)).to(device)


def step(model: Network, optimizer: torch.optim.Optimizer, text: Padded, *, bf16: bool) -> float:
    """Milliseconds of one update."""
    device = text.values.device.type
    _wait(device)
    began = time.perf_counter()
    with torch.autocast(device, torch.bfloat16, enabled=bf16):
        logits = model({"source": text}, text).logits
    (token_loss(logits.float(), text).sum() / text.mask.sum()).backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    _wait(device)
    return (time.perf_counter() - began) * 1000


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Print milliseconds for each variant: median of rounds, and the range."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    ask.add_argument("--rounds", type=int, default=7)
    ask.add_argument("--batch", type=int, default=256)
    ask.add_argument("--length", type=int, default=30)
    given = ask.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    ids = torch.randint(4, VOCABULARY, (given.batch, given.length), device=given.device)
    text = Padded(ids, torch.ones_like(ids, dtype=torch.bool))
    variants = {}
    for bridge in BRIDGES:
        for precision in ("tf32", "bf16") if given.device == "cuda" else ("float32",):
            model = network(bridge, given.device)
            variants[bridge, precision] = (model, optimizer_for(model.parameters(), LearningSettings()))
    times: dict[tuple[str, str], list[float]] = {name: [] for name in variants}
    for _ in range(given.rounds + WARM_UP):
        for name, (model, optimizer) in variants.items():
            times[name].append(step(model, optimizer, text, bf16=name[1] == "bf16"))
    for (bridge, precision), taken in times.items():
        kept = taken[WARM_UP:]
        print(f"{bridge:11} {precision:8} {statistics.median(kept):8.1f} ms  ({min(kept):.1f} to {max(kept):.1f})")


if __name__ == "__main__":
    main()
