"""What cannot fit into memory is refused before it begins: how much, and what to lower."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import sixjars
import sixjars_runtime
from sixjars.errors import DataError, LearningError
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.runs.training import network as training_memory
from sixjars.runs.training.network import fresh_network, key_of
from sixjars_runtime import memory

SENTENCE = r"^this search needs about .* of memory for 2 x 4,000 rows, a vocabulary of \d+ and up to 12 steps, but 1 MB "


def write(path: Path, text: str) -> None:
    """A file in folders that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 1,000 kB of free memory, and a folder of control groups."""
    write(tmp_path / "meminfo", "MemTotal: 9000 kB\nMemAvailable:    1000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    return tmp_path


def test_free_memory_is_that_of_the_machine_or_of_a_group(machine: Path) -> None:
    assert memory.free_memory() == 1_024_000
    write(machine / "groups/memory.max", "max\n")
    write(machine / "groups/memory.current", "5\n")
    assert memory.free_memory() == 1_024_000
    write(machine / "groups/memory.max", "500000\n")
    write(machine / "groups/memory.current", "450000\n")
    write(machine / "groups/memory.stat", "anon 3\ninactive_file 10000\n")
    assert memory.free_memory() == 60_000
    write(machine / "groups/memory/memory.limit_in_bytes", "40000\n")
    write(machine / "groups/memory/memory.usage_in_bytes", "30000\n")
    write(machine / "groups/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 9\n")
    assert memory.free_memory() == 10_009
    write(machine / "groups/memory/memory.usage_in_bytes", "90000\n")
    assert memory.free_memory() == 0


def test_where_nobody_says_nothing_is_refused(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "meminfo").unlink()
    monkeypatch.delattr("os.sysconf")
    assert memory.free_memory() is None
    memory.SearchSize(10**6, 10**6, 10**6, 10**6, 10**6, 10**6, beam=True).check(None)


@pytest.mark.parametrize(
    "how", [{"search": "beam", "width": 4000}, {"search": "sample", "nbest": 4000}], ids=str
)
@pytest.mark.parametrize("where", ["toolkit", "runtime"])
def test_a_search_that_does_not_fit(
    run: Path, exported: Path, how: dict[str, Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = (
        sixjars.load(run, device="cpu") if where == "toolkit" else sixjars_runtime.load(exported)
    )
    module = "sixjars.decoding.memory" if where == "toolkit" else "sixjars_runtime.exported.model"
    asked: list[int] = []

    def free() -> int:
        asked.append(1)
        return 10**6

    monkeypatch.setattr(f"{module}.free_memory", free)
    error = DataError if where == "toolkit" else sixjars_runtime.SixJarsError
    with pytest.raises(error, match=SENTENCE):
        model.predict(["ghar", "namaste"], **how)
    assert asked == [1]
    assert model.predict(["ghar", "namaste"], search="beam", width=20)[0].text
    assert asked == [1]  # a search of few rows is never estimated


def test_an_estimate_is_of_the_order_of_what_is_taken(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch counts what it allocates: an estimate refuses nothing that fits, and is of use."""

    sizes: list[memory.SearchSize] = []
    monkeypatch.setattr(memory.SearchSize, "check", lambda size, free: sizes.append(size))
    predictor = sixjars.load(run, device="cpu")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        predictor.predict(["ghar", "namaste"], search="beam", width=2500)
    live = most = 0
    for event in profiled.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    [size] = sizes
    assert 0.4 * size.bytes < most < 20 * size.bytes


def test_a_recipe_that_does_not_fit(call: Any, recipe: Callable[..., str], tmp_path: Path) -> None:
    """A hundred terabytes: not a byte of it is allocated, and no run is left behind."""
    path = recipe(model={"encoder": {"size": 900_000}, "decoder": {"size": 900_000}})
    told = call("train", path, "--out", tmp_path / "run")
    assert told.code == 2
    sentence = told.complaints[-1]
    assert sentence.startswith("sixjars: training this recipe needs about ")
    assert " of memory (weights, gradients and the optimizer's numbers), but " in sentence
    assert "The largest: encoder.rnn." in sentence or "The largest: decoder.rnn." in sentence
    assert "(2700000, 900000) takes " in sentence
    assert sentence.endswith(" Lower model.encoder.size, model.decoder.size.") or sentence.endswith(
        " Lower model.decoder.size, model.encoder.size."
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("learning", "numbers"),
    [
        ({"optimizer": "adam"}, 4),
        ({"optimizer": "sgd"}, 2),
        ({"optimizer": "sgd", "momentum": 0.9}, 3),
        ({"optimizer": "adadelta", "freeze": ["encoder", "decoder"]}, 1),
    ],
    ids=str,
)
def test_what_training_takes_is_what_torch_allocates(
    recipe: Callable[..., str],
    learning: dict[str, Any],
    numbers: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The optimizers themselves say how many numbers they remember of each weight."""

    blueprint = Blueprint.of(read_recipe(recipe(learning=learning | {"freeze": []})))
    splits = splits_of(blueprint)
    network = fresh_network(blueprint, splits)
    kinds: dict[str, Any] = {
        "adam": torch.optim.Adam,
        "sgd": torch.optim.SGD,
        "adadelta": torch.optim.Adadelta,
    }
    more = {"momentum": learning["momentum"]} if "momentum" in learning else {}
    optimizer = kinds[learning["optimizer"]](network.parameters(), lr=1e-3, **more)
    for weight in network.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    weights = sum(weight.numel() * 4 for weight in network.parameters())
    moments = sum(
        value.numel() * 4
        for state in optimizer.state.values()
        for value in state.values()
        if torch.is_tensor(value) and value.numel() > 1
    )
    frozen = "freeze" in learning
    expected = weights if frozen else 2 * weights + moments
    assert expected == pytest.approx(numbers * weights, rel=0.01)
    settings = blueprint.recipe.learning.model_copy(update=learning)
    planned = Blueprint(
        blueprint.recipe.model_copy(update={"learning": settings}), blueprint.fields, blueprint.plan
    )
    monkeypatch.setattr(training_memory, "NEVER_TOO_MUCH", 0)
    monkeypatch.setattr(training_memory, "free_on", lambda device: numbers * weights)
    training_memory.check_fits(planned, splits, torch.device("cpu"))
    monkeypatch.setattr(training_memory, "free_on", lambda device: numbers * weights - 1)
    told = r"training this recipe needs about 0 MB of memory \(weights"
    with pytest.raises(LearningError, match=told):
        training_memory.check_fits(planned, splits, torch.device("cpu"))
    monkeypatch.setattr(training_memory, "free_on", lambda device: numbers * weights // 4)
    training_memory.check_fits(planned, splits, torch.device("cpu"), shares=4)  # as with --fsdp
    told = r"needs about 0 MB of memory in each of 3 processes \(weights"
    with pytest.raises(LearningError, match=told):
        training_memory.check_fits(planned, splits, torch.device("cpu"), shares=3)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("encoder.embedding.table.weight", "model.encoder.embedding.size"),
        ("encoder.rnn.layers.0.weight", "model.encoder.size"),
        ("decoder.bridge.score.weight", "model.bridge.size"),
        ("decoder.output.weight", "model.decoder.size"),
    ],
)
def test_a_weight_has_the_key_that_its_size_comes_from(
    recipe: Callable[..., str], name: str, key: str
) -> None:

    assert key_of(name, Blueprint.of(read_recipe(recipe()))) == key


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("[enforce fail] not enough memory: you tried to")]
)
def test_a_batch_that_does_not_fit(
    call: Any,
    recipe: Callable[..., str],
    tmp_path: Path,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(trainer: object) -> None:
        raise error

    monkeypatch.setattr("sixjars.learning.loop.Trainer.run", run)
    told = call("train", recipe(), "--out", tmp_path / "run")
    assert told.complaints[-1] == (
        "sixjars: there is not enough memory for this training; lower learning.batch_examples or "
        "learning.batch_tokens, data.*.max_length, or the sizes of model."
    )
