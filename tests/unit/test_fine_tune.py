"""Training that starts from another run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import sixjars
from sixjars.errors import Interrupted, RecipeError, RunError
from sixjars.learning.checkpoints import load_tensors, save_tensors
from sixjars.loss import Objective, SealedBatch
from sixjars.recipe.allowed_code import NOTHING
from sixjars.recipe.sections import LossSettings
from sixjars.runs.data.splits import splits_of
from sixjars.runs.fine_tune import StartingRun, read_inheriting
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.runs.training.network import fresh_network

from .tokenizers import vocabulary
from .trained import Notes, assert_same, one_step

Write = Callable[..., str]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """The final ones."""
    return load_tensors(folder / "model.safetensors")[0]


@pytest.fixture
def words(tmp_path: Path, from_file: Callable[..., str], pairs: Callable[..., Path]) -> Path:
    """A run that translates words of a file."""
    return sixjars.train(
        from_file(pairs(), learning={"epochs": 3, "rate": 0.05}), out=tmp_path / "old"
    ).folder


def new_recipe(folder: Path, rows: str, **sections: Any) -> str:
    """A recipe without a model, for a file with these rows."""
    (folder / "new.tsv").write_text("en\tde\n" + rows, encoding="utf-8")
    data = {"train": str(folder / "new.tsv"), "valid": 0.25}
    values = {"data": data, "learning": {"epochs": 2, "batch_examples": 4}, **sections}
    (folder / "new.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return str(folder / "new.yaml")


ROWS = "".join(f"word{n % 4} and zebra{n % 2}\twort{n % 3} und zebra{n % 2}\n" for n in range(12))


def test_one_step_is_that_of_those_weights_by_hand(
    recipe: Write, run: Path, tmp_path: Path
) -> None:
    """Of plain gradient descent: θ - rate · ∇L, L the mean over all tokens of the batch."""
    name = recipe(
        learning={"steps": 1, "batch_examples": 64, "optimizer": "sgd", "rate": 0.5, "clip": None}
    )
    sixjars.train(name, out=tmp_path / "new", from_run=run)
    predictor = sixjars.load(run, device="cpu")
    blueprint = Blueprint.of(read_recipe(name))
    train = splits_of(blueprint, predictor.fields).train
    batches = train.batches(batch_tokens=None, batch_examples=64, seed=0, training=True)
    [[rows]] = batches.plan(epoch=0, accumulate=1)
    network = predictor.network.train()
    total, _ = Objective(network, LossSettings())(SealedBatch(batches.collate(rows)))
    (total / batches.target_tokens(rows)).backward()
    for name, after in weights(tmp_path / "new").items():
        weight = network.get_parameter(name)
        assert weight.grad is not None
        torch.testing.assert_close(after, (weight - 0.5 * weight.grad).detach())


def spelled(field: Any) -> dict[str, int]:
    """The ids of a text field's tokens."""
    return dict(vocabulary(field.tokenizer))


def test_a_vocabulary_grows_and_old_outputs_stay(words: Path, tmp_path: Path) -> None:
    """Before any update: old rows are the same, new ones the mean, and the best output stays."""
    name = new_recipe(tmp_path, ROWS)
    origin = StartingRun.of(words, NOTHING)
    blueprint = Blueprint.of(
        read_inheriting(name, [], open_run(words), origin.run.outside, check=True)
    )
    splits = splits_of(origin.taught(blueprint))
    network = fresh_network(blueprint, splits, origin.predictor.network.backend)
    told = origin.hand_over(network, blueprint, splits.fields)
    assert "vocabulary of source: 9 + 2 new; vocabulary of target: 9 + 2 new." in told
    old, new = origin.predictor.network.state_dict(), network.state_dict()
    assert old.keys() == new.keys()
    grown = [name for name in old if old[name].shape != new[name].shape]
    assert grown == [
        *("encoder.embedding.table.weight", "decoder.embedding.table.weight"),
        *("decoder.output.weight", "decoder.output.bias"),
    ]
    for name, before in old.items():
        assert torch.equal(new[name][: len(before)], before)
    for name in grown:
        assert torch.equal(new[name][-1], old[name].mean(0))
    before, after = (spelled(fields.output) for fields in (origin.predictor.fields, splits.fields))
    assert after | before == after
    assert set(after) - set(before) == {"zebra0", "zebra1"}
    batch = splits_of(blueprint, origin.predictor.fields).train.batches(
        batch_tokens=None, batch_examples=12, seed=0, training=True
    )
    [[rows]] = batch.plan(epoch=0, accumulate=1)
    given = batch.collate(rows)
    one, two = (
        net.eval()(given.inputs, given.target).logits for net in (origin.predictor.network, network)
    )
    assert torch.equal(one, two[..., : one.shape[-1]])
    assert torch.equal(one.argmax(-1), two.argmax(-1))


def test_new_labels_come_after_the_old(tmp_path: Path) -> None:
    for name, labels in (("old", ("good", "bad")), ("new", ("fair", "bad"))):
        rows = "".join(f"a text {n} of words\t{labels[n % 2]}\n" for n in range(24))
        (tmp_path / f"{name}.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    data = {"source": {"column": "text"}, "label": {"column": "label"}, "valid": 0.2}
    values = {"task": "document_classification", "data": data, "learning": {"epochs": 1}}
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    files = [f"data.train={tmp_path / name}.tsv" for name in ("old", "new")]
    model = {"encoder.kind": "text", "encoder.size": 4, "decoder.size": 4, "bridge.kind": "initial"}
    sizes = [f"model.{key}={value}" for key, value in model.items()]
    old = sixjars.train(path, [files[0], *sizes], out=tmp_path / "old").folder
    notes = Notes()
    new = sixjars.train(path, [files[1]], out=tmp_path / "run", from_run=old, reporter=notes).folder
    expected = ["bad", "good", "fair"]
    assert json.loads((new / "fields" / "label.json").read_text())["labels"] == expected
    assert "classes of label: 2 + 1 new" in notes.lines[0]
    assert len(weights(new)["decoder.output.bias"]) == 3


@pytest.mark.parametrize("tokens", ["bpe", "unigram"])
def test_subwords_stay_as_they_are(
    tokens: str, tmp_path: Path, from_file: Callable[..., str], pairs: Callable[..., Path]
) -> None:
    fields = {name: {"tokens": tokens, "size": 40} for name in ("source", "target")}
    old = sixjars.train(from_file(pairs(), data=fields), out=tmp_path / "old").folder
    new = sixjars.train(new_recipe(tmp_path, ROWS), out=tmp_path / "new", from_run=old).folder
    assert_same(old, new, "fields/source.json", "fields/target.json")


def test_what_is_left_out_is_taken_and_what_is_said_is_checked(
    call: Any, words: Path, tmp_path: Path
) -> None:
    name, out = new_recipe(tmp_path, ROWS), tmp_path / "run"
    changes = ("model.encoder.dropout=0.25", "data.source.max_length=9")
    said = call("train", name, *changes, "--from", words, "--out", out)
    assert said.code == 0
    size = sum(tensor.numel() for tensor in weights(words).values())
    assert said.err.splitlines()[0] == (
        f"note: started from {words}: {size:,} parameters; "
        "vocabulary of source: 9 + 2 new; vocabulary of target: 9 + 2 new."
    )
    old, new = open_run(words).recipe, open_run(out).recipe
    assert new.model.encoder == {**old.model.encoder, "dropout": 0.25}
    assert (new.task, new.model.decoder) == (old.task, old.model.decoder)
    assert json.loads((out / "run.json").read_text())["from"]["run"] == str(words)
    changes = ("model.decoder.size=9", "data.target.lowercase=true")
    with pytest.raises(RecipeError) as caught:
        sixjars.train(name, changes, out=out / "x", from_run=words)
    assert str(caught.value) == (
        f"2 faults in {name}:\n"
        f"  - data.target.lowercase is True, but False in {words}; leave it out to take that.\n"
        f"  - model.decoder.size is 9, but 8 in {words}; leave it out to take that."
    )
    told = r"^.*: task is 'dialog', but .*old is a model for translation; start from"
    with pytest.raises(RecipeError, match=told):
        sixjars.train(name, ["task=dialog"], out=out / "x", from_run=words)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            ["data.source.size=10", "data.target.size=5"],
            "vocabulary of source: 9 + 1 new; vocabulary of target: 9 + 0 new.",
        ),
        (
            ["learning.freeze=encoder"],
            "; the new rows of encoder.embedding.table.weight are frozen.",
        ),
    ],
)
def test_new_rows_that_are_limited_or_frozen_are_told(
    changes: list[str], note: str, words: Path, tmp_path: Path
) -> None:
    name, notes = new_recipe(tmp_path, ROWS), Notes()
    sixjars.train(name, changes, out=tmp_path / "run", from_run=words, reporter=notes)
    assert notes.lines[0].endswith(note)


def test_a_fine_tuning_that_is_stopped_goes_on(words: Path, tmp_path: Path, tired: Any) -> None:
    name, frozen = new_recipe(tmp_path, ROWS), ["learning.freeze=encoder.rnn"]
    sixjars.train(name, frozen, out=tmp_path / "whole", from_run=words)
    with pytest.raises(Interrupted):
        sixjars.train(name, frozen, out=tmp_path / "stopped", from_run=words, reporter=tired(3))
    # a state was saved, so the first run is not needed any more
    moved = words.rename(tmp_path / "moved")
    sixjars.train(name, frozen, out=tmp_path / "stopped", resume=True)
    moved.rename(words)
    names = ("model.safetensors", "recipe.yaml", "run.json", "log.jsonl")
    assert_same(tmp_path / "whole", tmp_path / "stopped", *names)


def test_a_fine_tuning_that_was_killed_at_its_start_starts_from_the_same_weights(
    words: Path, tmp_path: Path
) -> None:
    name, folder = new_recipe(tmp_path, ROWS), tmp_path / "run"
    sixjars.train(name, out=folder, from_run=words)
    before = (folder / "model.safetensors").read_bytes()
    # before the first save; before the vocabularies were written
    for at_start in ("checkpoints", "fields"):
        shutil.rmtree(folder / at_start)
        for later in ("model.safetensors", "scores.json") if at_start == "checkpoints" else ():
            (folder / later).unlink()
        sixjars.train(name, out=folder, resume=True)
        assert (folder / "model.safetensors").read_bytes() == before


def test_a_run_goes_on_whatever_became_of_the_one_it_began_from(
    words: Path, tmp_path: Path
) -> None:
    name, parent, folder = new_recipe(tmp_path, ROWS), tmp_path / "parent", tmp_path / "run"
    shutil.copytree(words, parent)
    sixjars.train(name, out=folder, from_run=parent)
    longer = ["learning.epochs=3", "learning.steps=null"]
    sixjars.train(parent / "recipe.yaml", longer, out=parent, resume=True)
    for start in (None, parent):
        assert sixjars.train(name, out=folder, resume=True, from_run=start).folder == folder


def test_resume_from_somewhere_else_is_refused(
    call: Any, recipe: Write, words: Path, run: Path, tmp_path: Path
) -> None:
    name, folder = new_recipe(tmp_path, ROWS), tmp_path / "run"
    sixjars.train(name, out=folder, from_run=words)
    assert call("train", name, "--out", folder, "--resume", "--from", run).sentence == (
        f"{folder} was begun from other weights than those in {run}; begin a new run with another "
        "--out."
    )
    assert call("train", name, "--out", folder, "--resume", "--from", words).code == 0
    plain = recipe()
    sixjars.train(plain, out=tmp_path / "plain")
    own = ("train", plain, "--out", tmp_path / "plain", "--resume", "--from", words)
    begun = "was not begun from another run; leave out --from to go on with it."
    assert call(*own).sentence == f"{tmp_path / 'plain'} {begun}"


def test_a_folder_of_a_stranger_is_checked_as_for_a_prediction(words: Path, tmp_path: Path) -> None:
    name, out = new_recipe(tmp_path, ROWS), tmp_path / "run"
    with pytest.raises(RunError, match=r"^run folder .*nowhere does not exist\.$"):
        sixjars.train(name, out=out, from_run=tmp_path / "nowhere")
    model = words / "model.safetensors"
    content, tensors = model.read_bytes(), weights(words)
    save_tensors(model, {**tensors, "decoder.output.bias": torch.zeros(2)}, {})
    told = r"does not fit the recipe beside it: decoder.output.bias is \(2,\), but should"
    with pytest.raises(RunError, match=told):
        sixjars.train(name, out=out, from_run=words)
    model.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(RunError, match="is damaged: its check sum is wrong"):
        sixjars.train(name, out=out, from_run=words)
    model.unlink()
    with pytest.raises(RunError, match="has no trained weights yet"):
        sixjars.train(name, out=out, from_run=words)
    assert not out.exists()


def test_weights_of_another_shape_name_the_setting(tmp_path: Path) -> None:
    """A tensor that cannot grow: its columns differ."""
    name = "transliteration/sample_attention"
    old = one_step(name, tmp_path / "old", size=32)
    origin = StartingRun.of(old, NOTHING)
    changes = ["data.sample.size=32", "model.decoder.size=9", "data.source.max_length=7"]
    blueprint = Blueprint.of(read_recipe(name, changes))
    network = fresh_network(blueprint, splits_of(origin.taught(blueprint)))
    with pytest.raises(RunError) as caught:
        origin.hand_over(network, blueprint, origin.taught(blueprint).fields)
    assert str(caught.value).startswith(f"the weights of {old} do not fit: decoder.bridge.")
    told = "(data.source.max_length was 200 and is 7). Give the fields the settings of that run."
    assert str(caught.value).endswith(told)
