"""The benchmark of speed: what it measures is what it says, and its table is right."""

import doctest
import importlib
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def at_the_root() -> Iterator[None]:
    """From where `python -m benchmarks.speed` is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.syspath_prepend(str(ROOT))
        yield


def module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.speed.{name}")


def case(measurement: str = "training", **more: Any) -> Any:
    values = {"precision": "float32", "size": "small", "batch": 2, "length": 4, "tokens": 3, **more}
    return module("cases").Case(measurement, "cpu", **values)


@pytest.mark.parametrize("bridge", ["additive", "general", "dot", "every_step", "initial"])
def test_an_update_learns(bridge: str) -> None:
    update = module("ours").Ours().prepare(case(bridge=bridge))
    losses = [float(update()) for _ in range(5)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("measurement", ["greedy", "beam 5"])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_decoding_outputs_a_fixed_number_of_tokens(measurement: str, precision: str) -> None:
    found = module("ours").Ours().prepare(case(measurement, precision=precision, tokens=6))()
    assert [len(hypotheses[0].tokens) + hypotheses[0].finished for hypotheses in found] == [6, 6]


def test_a_version_that_has_no_such_precision_is_left_out() -> None:
    assert module("ours").Ours().prepare(case(precision="int4")) is None


def test_the_floor_counts_the_weights_of_the_network() -> None:
    """All matrices but the vector of the scores."""
    network = module("ours").network_of(case())
    matrices = [
        weight for weight in network.parameters() if weight.dim() == 2 and min(weight.shape) > 1
    ]
    assert module("floor").weights(case()) == sum(weight.numel() for weight in matrices)


def test_the_products_are_those_that_torch_counts() -> None:
    """In training, against its counter of operations; it also counts attention, which is small here."""
    from torch.utils.flop_counter import FlopCounterMode

    own = case(batch=8, length=4)
    counted = sum(
        2 * one.rows * one.inner * one.outer * one.times for one in module("floor").products(own)
    )
    forward = sum(
        2 * one.rows * one.inner * one.outer * one.times
        for one in module("floor").products(own)[:11]
    )
    assert counted == 3 * forward
    network, batches = module("ours").network_of(own), module("ours").batches_of(own)
    batch = batches.collate(torch.arange(8))
    # nn.GRU is one operation for the counter, so the encoder's products are taken from the list.
    encoded = network.encode(batch.inputs)
    # the fast path's products are not counted
    with (
        torch.no_grad(),
        FlopCounterMode(display=False) as counter,
    ):
        _ = network.decoder.teach(encoded, batch.target).logits
    decoder = forward - sum(
        2 * one.rows * one.inner * one.outer * one.times
        for one in module("floor").products(own)[:4]
    )
    assert counter.get_total_flops() == pytest.approx(decoder, rel=0.02)


def test_a_worker_answers_requests_and_tells_of_failures() -> None:
    asked = [
        {"what": "time", "case": asdict(case("greedy", size=size)), "turns": 1}
        for size in ("small", "huge")
    ]
    found = io.StringIO()
    module("worker").serve(
        "floor", io.StringIO("".join(json.dumps(one) + "\n" for one in asked)), found
    )
    [first, second] = [json.loads(line) for line in found.getvalue().splitlines()]
    assert first["found"] > 0.0
    assert second == {"error": "KeyError: 'huge'"}


def test_a_failure_is_left_out_of_the_table_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    worker = module("worker").Worker("floor", "floor", path=None, threads=1)
    try:
        assert worker.ask("time", case("greedy", size="huge")) is None
    finally:
        worker.close()
    assert capsys.readouterr().err.endswith("KeyError: 'huge'\n")


def test_a_process_that_ends_is_told() -> None:
    worker = module("worker").Worker("nobody", "nobody", path=None, threads=1)
    worker.process.wait()
    with pytest.raises(SystemExit, match=r"nobody has ended; what it said is above\."):
        worker.ask("time", case())
    worker.close()


def test_the_table_has_ratios_of_each_round() -> None:
    table = module("table")
    assert doctest.testmod(table) == (0, 2)
    rows = [
        table.Row(
            case(), {"ours": [1.0, 2.0, 3.0], "joeynmt": [2.0, 6.0, 6.0], "floor": [0.5, 0.5, 0.5]}
        )
    ]
    rows += [
        table.Row(case(precision="bf16"), {"ours": [4.0, 4.0, 4.0], "joeynmt": [3.0, 3.0, 3.0]})
    ]
    [head, _, first, second] = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.table(rows, ["joeynmt"], 1e9)
    ]
    cells = dict(zip(head, first, strict=True))
    assert cells["ours, ms"] == "2 (1 to 3)"
    assert cells["joeynmt / ours"] == "**2 (2 to 3)**"
    assert cells["ours / products"] == "4"
    assert cells["tokens/s"] == "4,000"
    assert dict(zip(head, second, strict=True))["products, ms"] == ""
    [best] = table.best(rows, ["joeynmt"])[2:]
    expected = ["2.0 ms, float32", "1.50 (3.0 ms, bf16)"]
    assert [cell.strip() for cell in best.split("|")[4:6]] == expected


def test_a_peer_that_does_not_run_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In whichever round it fails; the commands of ours must run."""
    commands, broken = module("commands"), {"peer"}
    assert doctest.testmod(commands) == (0, 1)

    def timed(words: list[str], path: Path) -> tuple[float, float]:
        if broken & set(words):
            raise CalledProcessError(
                1, words, stderr=b"Traceback\nModuleNotFoundError: No module named 'x'\n"
            )
        return 1.0, 1.0

    monkeypatch.setattr(commands, "timed", timed)
    peers = {name: Path(name) for name in ("peer", "other")}
    found = "\n".join(commands.cold({"ours": Path("src")}, peers, 2))
    assert "| other" in found
    assert "peer" not in found
    assert capsys.readouterr().err == (
        "peer is left out of '--help', for it ended with exit code 1 (ModuleNotFoundError: No module named 'x').\n"
    )
    broken.add("sixjars")
    with pytest.raises(CalledProcessError):
        commands.cold({"ours": Path("src")}, {}, 1)


def test_every_case_that_is_asked_for_is_measured_once() -> None:
    shapes = [("small", 1, 10), ("base", 32, 30)]
    found = [
        *module("cases").cases(
            "cuda", shapes, ["tf32", "bf16"], ["additive", "initial"], tokens=40, batches=1
        )
    ]
    assert len(found) == len(set(found)) == 2 * 2 * (3 + 1)
    precisions = module("cases").PRECISIONS["cpu"]
    found = [
        *module("cases").cases(
            "cpu", shapes, precisions, ["additive", "initial"], tokens=40, batches=4
        )
    ]
    assert len(found) == len(set(found)) == 2 * (2 + 2 * len(precisions))
    assert {one.measurement for one in found if one.precision == "int8"} == {"greedy", "beam 5"}
    expected = {(True, 1), (False, 4)}
    assert {(one.measurement == "training", one.batches) for one in found} == expected
