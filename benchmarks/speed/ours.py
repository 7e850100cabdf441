"""This toolkit, through the same doors as `sixjars train` and `sixjars predict`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import torch

from sixjars import (
    Attention,
    Bridge,
    Encoder,
    EveryStep,
    InitialState,
    Network,
    SequenceDecoder,
    TextEncoder,
    WordEmbedding,
    cli,
)
from sixjars.data.batches import Batches, IdColumn
from sixjars.evaluation.score import encoded_batches, hypotheses_of
from sixjars.learning.engine import fabric_for
from sixjars.learning.loop import Trainer, TrainingHooks
from sixjars.loss import Objective
from sixjars.progress import Reporter
from sixjars.recipe.sections import LearningSettings, LossSettings, SearchSettings
from sixjars_runtime.special_tokens import STOP

from .cases import Case

try:
    from sixjars.kernels.backends import in_precision, prediction_backend, training_backend
except ImportError:  # a version without backends, which chose them by itself
    from sixjars.model.precision import in_precision  # type: ignore[import-not-found,no-redef]

    training_backend = prediction_backend = None  # type: ignore[assignment]

TRAINS: Mapping[str, Literal["32", "bf16", "fp16"]] = {
    "float32": "32",
    "tf32": "32",
    "bf16": "bf16",
    "fp16": "fp16",
}
PREDICTS: Mapping[str, Literal["32", "bf16", "int8"]] = {
    "float32": "32",
    "tf32": "32",
    "bf16": "bf16",
    "int8": "int8",
}
"""What `learning.precision` and `--precision` call each precision of the benchmark."""


def bridge_of(kind: str, encoder: Encoder, size: int, computes: Mapping[str, Any]) -> Bridge:
    """A bridge by its name in the benchmark."""
    options: dict[str, Any] = {"state_size": size, **computes}
    if kind in {"initial", "every_step"}:
        plain = InitialState if kind == "initial" else EveryStep
        return plain(summary_size=encoder.summary_size, **options)
    options["source_size"] = encoder.output_size
    if kind == "additive":
        return Attention(size=size, **options)
    return Attention(score="dot" if kind == "dot" else "general", **options)


def network_of(case: Case) -> Network:
    """The model of a case; for the dot product, the encoder's two directions together have the size of the state."""
    sizes, computes = case.sizes, backend_of(case)
    encoder = TextEncoder(
        embedding=WordEmbedding(vocabulary=sizes.vocabulary, size=sizes.embedding),
        size=sizes.hidden // 2 if case.bridge == "dot" else sizes.hidden,
        direction="both",
        **computes,
    )
    words = WordEmbedding(vocabulary=sizes.vocabulary, size=sizes.embedding)
    bridge = bridge_of(case.bridge, encoder, sizes.hidden, computes)
    decoder = SequenceDecoder(bridge=bridge, embedding=words, size=sizes.hidden, **computes)
    return Network(encoder, decoder, **computes)


def backend_of(case: Case) -> dict[str, Any]:
    """The backend that the commands would choose; nothing where a version has none."""
    if training_backend is None:
        return {}
    if case.measurement != "training":
        return {"backend": prediction_backend(case.device)}
    options = {"fast": True, "graphs": case.device == "cuda"}
    return {"backend": training_backend(case.device, TRAINS[case.precision], **options)}


def batches_of(case: Case) -> Batches:
    """All sentences in one batch."""
    ids = case.ids()
    flat = (ids.ravel().astype(np.int32), np.arange(len(ids) + 1) * ids.shape[1])
    column = IdColumn(flat, stop=STOP)
    return Batches({"source": column}, column, batch_examples=case.batch)


@final
class Ours:
    """The toolkit, in the version that is imported."""

    def prepare(self, case: Case) -> Callable[[], object] | None:
        """An update of the trainer, or the answers of a batch."""
        trains = case.measurement == "training"
        if case.precision not in (TRAINS if trains else PREDICTS):
            return None
        if hasattr(cli, "keep_memory"):  # an older version does not
            cli.keep_memory()
        torch.manual_seed(0)
        return self._training(case) if trains else self._search(case)

    def _training(self, case: Case) -> Callable[[], object]:
        settings = LearningSettings(precision=TRAINS[case.precision], epochs=1_000_000)
        around = TrainingHooks(Path("nothing is saved"), dict, "lower", Reporter())
        fabric = fabric_for(device=case.device, devices=1, precision=settings.precision)
        objective = Objective(network_of(case).to(fabric.device), LossSettings())
        trainer = Trainer(objective, batches_of(case), settings, around, fabric)
        [group] = trainer.batches.plan(epoch=0)
        load = trainer._load(group)
        name = "update" if hasattr(trainer, "update") else "_update"  # of an older version
        make = getattr(trainer, name)

        def update() -> object:
            trainer.state.step += 1
            return make(load)

        return update

    def _search(self, case: Case) -> Callable[[], object]:
        network = in_precision(network_of(case).to(case.device).eval(), PREDICTS[case.precision])
        batches = batches_of(case)
        kind: Literal["greedy", "beam"] = "greedy" if case.beam == 1 else "beam"
        settings = SearchSettings(
            kind=kind, width=case.beam, max_length=case.tokens, min_length=case.tokens - 1
        )

        def search(_: int = 0) -> object:
            found = []
            for batch, source in encoded_batches(network, batches, examples=case.batch):
                found += hypotheses_of(
                    network, source, settings, seeds=batch.numbers.tolist(), attention=False
                )
            return found

        def file() -> object:
            from sixjars.runs.prediction.threads import (
                thread_for_each_core,  # an older version has none
            )

            with thread_for_each_core() as threads:  # as `sixjars predict` does
                return list(threads.map(search, range(case.batches)))

        return search if case.batches == 1 else file
