"""Small and unbalanced data: what is held out, weights, folds, unknown words, and the notes."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import sixjars
from sixjars.data.batches import Batches, EmptyColumn, IdColumn
from sixjars.errors import DataError, Interrupted, RecipeError, RunError
from sixjars.flow.values import Padded
from sixjars.loss import class_weights, without_words
from sixjars.recipe.sections import LossSettings
from sixjars.runs import train as training
from sixjars.runs.data.splits import Splits, notes_on, splits_of
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars_runtime.special_tokens import UNK

from .conftest import Call
from .faults import check_fault, entries
from .trained import Notes

SMALL = {
    "encoder": {"kind": "text", "size": 8},
    "bridge": {"kind": "initial"},
    "decoder": {"size": 8},
}


def table(path: Path, rows: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path.name


def rows(folder: Path, counts: dict[str, int], name: str = "rows.jsonl") -> str:
    """So many texts of each label, no two the same."""
    pairs = ((label, n) for label, count in counts.items() for n in range(count))
    texts = ({"text": f"{label} word{n}", "label": label} for label, n in pairs)
    return table(folder / name, texts)


def values(folder: Path, train: Any, **sections: dict[str, Any]) -> dict[str, Any]:
    """A recipe; `train` is its file, or how many rows of each label it has."""
    file = rows(folder, train) if isinstance(train, dict) else train
    data = {"folder": str(folder), "train": file, "source": {"segments": "none"}}
    data |= sections.pop("data", {})
    learning = {"batch_examples": 8, "epochs": 2, **sections.pop("learning", {})}
    values = {"task": "document_classification", "data": data, "model": SMALL}
    return {**values, "learning": learning, **sections}


def records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def splits(made: dict[str, Any]) -> Splits:
    return splits_of(Blueprint.of(recipe_of(made, "a test")))


def labels(found: Splits) -> list[dict[str, int]]:
    return [dict(Counter(split.targets)) for split in (found.train, found.valid)]


def trained(folder: Path, made: dict[str, Any], **options: Any) -> tuple[Any, list[str]]:
    (folder / "recipe.yaml").write_text(yaml.safe_dump(made))
    options |= {"device": "cpu", "reporter": (notes := Notes())}
    return sixjars.train(folder / "recipe.yaml", out=folder / "run", **options), notes.lines


# what is held out


SIX = dict.fromkeys("abcdef", 8)
HELD = [
    # 5 %, in proportion
    ({"a": 800, "b": 60, "c": 60, "d": 60}, {"a": 40, "b": 3, "c": 3, "d": 3}),
    # 20, where 5 % are fewer
    ({"a": 60, "b": 40}, {"a": 12, "b": 8}),
    # a third
    (SIX, dict(zip(SIX, (3, 3, 3, 3, 2, 2), strict=True))),
    # two of each
    ({"a": 900, "b": 6, "c": 4}, {"a": 45, "b": 2, "c": 2}),
    # half of them, where there are fewer than four
    ({"a": 90, "b": 3, "c": 1}, {"a": 19, "b": 1}),
]


@pytest.mark.parametrize(("counts", "held"), HELD)
def test_how_much_is_held_out_depends_on_the_size(
    counts: dict[str, int], held: dict[str, int], tmp_path: Path
) -> None:
    train, valid = labels(splits(values(tmp_path, counts)))
    assert Counter(train) + Counter(valid) == Counter(counts)
    assert sorted(valid.values()) == sorted(held.values())
    assert min(counts.values()) < 8 or valid == held or counts == SIX


def test_a_fraction_is_taken_at_its_word_and_of_every_label(tmp_path: Path) -> None:
    made = values(tmp_path, {"a": 60, "b": 20}, data={"valid": 0.1, "test": 0.25})
    found = splits(made)
    assert found.test is not None
    assert Counter(found.valid.targets) == {"a": 6, "b": 2}
    # round(0.25 * 72): half a row is rounded to even
    assert Counter(found.test.targets) == {"a": 14, "b": 4}


def test_the_seed_of_the_data_is_not_that_of_learning(tmp_path: Path) -> None:
    file = rows(tmp_path, {"a": 60, "b": 60})
    chosen = [
        splits(values(tmp_path, file, learning={"seed": seed})).valid.inputs for seed in (0, 1)
    ]
    other = splits(values(tmp_path, file, data={"seed": 1})).valid.inputs
    assert chosen[0] == chosen[1] != other


def test_inputs_with_several_labels_are_not_held_out_by_label(tmp_path: Path) -> None:
    """A text that has two labels in two rows stays whole."""
    texts = ({"text": f"word{n // 2}", "label": "ab"[n % 2]} for n in range(80))
    found = splits(values(tmp_path, table(tmp_path / "rows.jsonl", texts)))
    assert labels(found)[1] == {"a": 13, "b": 13}  # a third of 40 inputs
    train, valid = ({row["source"] for row in of.inputs} for of in (found.train, found.valid))
    assert not train & valid


def test_labels_are_held_out_in_proportion_unless_many_inputs_have_several(tmp_path: Path) -> None:
    """Of two rare ones half is held out whatever the seed, or as chance will have it."""
    once = [{"text": f"word{n}", "label": "rare" if n < 4 else "a"} for n in range(60)]
    for mixed, by_chance in ((3, False), (30, True)):
        again = [{**row, "label": "b"} for row in once[-mixed:]]
        file = table(tmp_path / "rows.jsonl", [*once, *again])
        held = {
            labels(splits(values(tmp_path, file, data={"seed": seed})))[1].get("rare", 0)
            for seed in range(8)
        }
        assert (len(held) > 1) == by_chance


def repeated(folder: Path, **data: Any) -> dict[str, Any]:
    """900 rows with 60 inputs; the rare label has four of them, and one input has two labels."""
    made = [
        {"text": f"word{n % 60}", "label": "rare" if n % 60 < 4 else "ab"[n % 2]}
        for n in range(900)
    ]
    made[10]["label"] = "b"
    return values(folder, table(folder / "rows.jsonl", made), data=data)


@pytest.mark.parametrize("seed", range(5))
def test_two_inputs_of_each_label_are_held_out_where_inputs_come_again(
    seed: int, tmp_path: Path
) -> None:
    found = splits(repeated(tmp_path, seed=seed))
    pairs = zip(found.valid.inputs, found.valid.targets, strict=True)
    held = {(row["source"], label) for row, label in pairs}
    assert Counter(label for _, label in held)["rare"] == 2


def test_turns_of_one_conversation_are_told_of_by_their_lines(tmp_path: Path) -> None:
    talks = ({"turns": [f"hello {talk} {turn}" for turn in range(12)]} for talk in range(6))
    file = table(tmp_path / "talks.jsonl", talks)
    data = {"folder": str(tmp_path), "train": file, "format": "dialogs"}
    source = {"source": {"column": "turns", "segments": "turns"}}
    assert splits({"task": "conversation", "data": {**data, **source}}).valid.notes == (
        "data.valid: 66 rows have only 6 different lines, and rows with the same line are held out "
        "together: 22 rows (33%) with 2 lines.",
    )


def test_rows_with_the_same_input_are_told_of_where_many_are_held_out(tmp_path: Path) -> None:
    _, said = trained(tmp_path, repeated(tmp_path), overrides=["learning.steps=1"])
    assert said[0] == (
        "data.valid: 900 rows have only 60 different inputs, and rows with the same input are held "
        "out together: 300 rows (33%) with 20 inputs."
    )
    assert splits(repeated(tmp_path, valid=0.1)).valid.notes == ()
    assert splits(values(tmp_path, {"a": 30, "b": 30})).valid.notes == ()


def test_one_row_cannot_be_split(tmp_path: Path) -> None:
    told = r"data\.valid: holding out one leaves nothing to train on; .* has 1 input\."
    with pytest.raises(DataError, match=told):
        splits(values(tmp_path, {"a": 1}))


# notes


def test_notes_on_a_validation_set_that_is_too_small(tmp_path: Path) -> None:
    _, said = trained(tmp_path, values(tmp_path, {"a": 12, "b": 9, "3": 1}))
    assert said == [
        "the label '3' is in the training set only once; is that a mistake? "
        "data.label.min_count=2 leaves such labels out.",
        "the label '3' is not in the validation set, so nothing is chosen by how well that is "
        "recognized.",
        "the validation set has 7 examples, too few to choose a checkpoint by; hold out more "
        "(data.valid), or say learning.folds: 5.",
        "there is no test set (data.test); the final scores are of the validation set, "
        "which also chooses the checkpoint.",
    ]


def of_lengths(folder: Path, longest: int = 200, **splits: list[int]) -> list[str]:
    """The notes on inputs of so many words, where those over `longest` are not learned from."""
    for name, lengths in splits.items():
        texts = [" ".join(["word"] * length) for length in lengths]
        pairs = ({"text": text, "label": "ab"[at % 2]} for at, text in enumerate(texts))
        table(folder / f"{name}.jsonl", pairs)
    data: dict[str, Any] = {name: f"{name}.jsonl" for name in splits}
    data["source"] = {"segments": "none", "max_length": longest, "on_long": "drop"}
    recipe = recipe_of(values(folder, "train.jsonl", data=data), "a test")
    return [note for note in notes_on(splits_of(Blueprint.of(recipe))) if "longer" in note]


def test_inputs_longer_than_those_learned_from_are_told_of(tmp_path: Path) -> None:
    """One training text in a hundred may be long; so may a tenth of the others, and one alone."""
    train = [*range(1, 19)] * 11 + [18, 90]
    assert of_lengths(tmp_path, train=train, valid=[5] * 40, test=[19] * 24 + [18] * 13) == [
        "24 of 37 test inputs (65 %) are longer than 99 % of the training inputs (18 tokens)"
        "; outputs may be poor there, so train on longer ones too (in translation, such as "
        "neighbouring rows joined)."
    ]
    [note] = of_lengths(tmp_path, train=train, valid=[30] * 6 + [9] * 44, test=[30] * 2)
    told = "6 of 50 validation inputs (12 %) and 2 of 2 test inputs (100 %) are longer than 99 % of"
    assert note.startswith(told)
    assert of_lengths(tmp_path, train=train, valid=[30] * 5 + [9] * 45, test=[30] + [3] * 4) == []
    assert of_lengths(tmp_path, train=train, valid=train[:50], test=train) == []
    [note] = of_lengths(tmp_path, 9, train=train, valid=train)
    assert note.startswith(
        "101 of 200 validation inputs (50 %) are longer than 99 % of the training inputs (9 tokens)"
    )


def test_why_bleu_is_0_is_told_after_training_and_by_evaluate(call: Call, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"word{n}\twort{n}\n" for n in range(40)))
    sides = {"source": {"column": 1}, "target": {"column": 2}}
    made = {
        "task": "translation",
        "data": {"train": str(tmp_path / "pairs.tsv"), **sides},
        "model": {"encoder": {"size": 4}, "decoder": {"size": 4}},
        "learning": {"steps": 1},
        "evaluation": {"search": {"max_length": 3}, "metrics": ["bleu"]},
    }
    _, said = trained(tmp_path, made)
    told = (
        "bleu is 0 because no output and no reference has 4 words, and it needs 4 in a row; "
        "compare exact_match, chrf or rougeL instead."
    )
    assert [note for note in said if "bleu" in note] == [told]
    assert f"note: {told}\n" in call("evaluate", tmp_path / "run").err
    assert "because" not in call("evaluate", tmp_path / "run", "--metrics", "chrf").err


# the metric that chooses


def test_the_first_metric_chooses_the_checkpoint(tmp_path: Path) -> None:
    def chosen(**sections: dict[str, Any]) -> str | None:
        made = values(tmp_path, {"a": 40, "b": 40}, **sections)
        return recipe_of(made, "a test").learning.metric

    assert chosen() == "accuracy@1"
    assert chosen(evaluation={"metrics": ["macro_f1", "accuracy@1"]}) == "macro_f1"
    assert chosen(learning={"metric": "loss"}) == "loss"
    assert chosen(data={"label": {"multi_label": True}}) == "labels_micro_f1"


# weights of labels


def test_weights_of_labels() -> None:
    counts = {"a": 80, "b": 15, "c": 5}
    balanced = class_weights(LossSettings(class_weights="balanced"), counts)
    totals = balanced * torch.tensor([80.0, 15.0, 5.0])
    torch.testing.assert_close(totals, torch.full((3,), 100 / 3))
    assert class_weights(LossSettings(class_weights={"c": 4.0}), counts).tolist() == [1.0, 1.0, 4.0]
    told = r"loss\.class_weights: label 'd' is unknown\. .*Known: a, b, c\."
    with pytest.raises(RecipeError, match=told):
        class_weights(LossSettings(class_weights={"d": 4.0}), counts)


def test_weights_need_one_label_for_each_example(tmp_path: Path) -> None:
    check_fault(
        values(tmp_path, "rows.jsonl"),
        "data.label.multi_label=true  loss.class_weights=balanced",
        "loss.class_weights: needs exactly one label for each example; remove it.",
    )


def test_balanced_weights_change_the_training(tmp_path: Path) -> None:
    file = rows(tmp_path, {"a": 100, "b": 10})
    logs = []
    for name, loss in (("plain", {}), ("even", {"class_weights": "balanced"})):
        (tmp_path / name).mkdir()
        trained(tmp_path / name, values(tmp_path, file, loss=loss))
        logs.append(records(tmp_path / name / "run/log.jsonl")[-1]["train_loss"])
    assert logs[0] != logs[1]


# several files


def test_rows_of_several_files_are_drawn_by_weight(tmp_path: Path) -> None:
    rows(tmp_path, {"a": 10, "b": 10}, "one.jsonl")
    rows(tmp_path, {"c": 20}, "two.jsonl")
    rows(tmp_path, {"d": 8}, "valid.jsonl")
    half = {"file": "valid.jsonl", "weight": 0.5}
    files = [{"file": "one.jsonl", "weight": 2}, "two.jsonl", half]
    found = splits(values(tmp_path, files, data={"valid": "one.jsonl"}))
    names = ("one.jsonl", "two.jsonl", "valid.jsonl")
    assert found.train.where == " + ".join(str(tmp_path / name) for name in names)
    batches = found.train.batches(batch_examples=4, training=True)
    drawn = []
    for epoch in range(3):
        plan = batches.plan(epoch=epoch)
        assert len(plan) == 16
        drawn.append(Counter(int(row) for update in plan for some in update for row in some))
        assert all(drawn[-1][row] == (2 if row < 20 else 1) for row in range(40))
        assert sum(drawn[-1][row] for row in range(40, 48)) == 4
    assert drawn[1] != drawn[2]  # another half in each epoch
    assert found.valid.weights is None


def test_every_epoch_has_as_many_batches_as_the_first() -> None:
    """Halves of rows of unequal lengths would need more or fewer batches of so many tokens."""
    lengths = np.arange(1, 60)
    ids = np.ones(int(lengths.sum()), dtype=np.int32)
    column = IdColumn((ids, np.concatenate([[0], np.cumsum(lengths)])))
    source = {"source": EmptyColumn(59)}
    batches = Batches(source, column, weights=np.full(59, 0.5), batch_tokens=150)
    assert len({len(batches.plan(epoch=epoch)) for epoch in range(20)}) == 1


FILES = """
[]
    data: 'train' is an empty list; name a file.
[{file: a.tsv, weight: 0}]
    data.train.0.weight: should be greater than 0, but is 0.
[{weight: 2}]
    data.train.0: key 'file' is missing.
[1]
    data.train.0: must be the name of a file, or {file: NAME, weight: NUMBER}, but is 1.
[a.tsv, null]
    data.train.1: must be the name of a file, or {file: NAME, weight: NUMBER}, but is None.
"""


@pytest.mark.parametrize(("files", "sentence"), entries(FILES))
def test_a_list_of_files_that_is_wrong(files: str, sentence: str, tmp_path: Path) -> None:
    check_fault(values(tmp_path, "unused"), f"data.train={files}", sentence)


def test_a_run_on_several_files(tmp_path: Path) -> None:
    rows(tmp_path, {"a": 40, "b": 40}, "one.jsonl")
    rows(tmp_path, {"d": 5, "c": 40}, "two.jsonl")
    files = ["one.jsonl", {"file": "two.jsonl", "weight": 1.5}]
    run, _ = trained(tmp_path, values(tmp_path, files))
    assert run.examples == 20
    assert sixjars.evaluate(run.folder).examples == 20


# words


def test_word_dropout_makes_a_share_of_the_words_unknown() -> None:
    whole = Padded.of([[7] * 1000, [7] * 500])
    torch.manual_seed(0)
    found = without_words(whole, 0.2)
    assert 0.15 < float((found.values[whole.mask] == UNK).float().mean()) < 0.25
    assert not found.values[~whole.mask].any()
    assert set(found.values[whole.mask].tolist()) == {7, UNK}


def test_word_dropout_is_for_inputs() -> None:
    sides = {"source": {"column": 1, "word_dropout": 0.1}, "target": {"column": 2}}
    check_fault(
        {"task": "translation", "data": {"train": "a.tsv", **sides}},
        "data.target.word_dropout=0.1",
        "data.target.word_dropout: only an input has word dropout; remove it.",
    )


def test_word_dropout_trains_the_vector_of_unknown_words(tmp_path: Path) -> None:
    file = rows(tmp_path, {"a": 40, "b": 40})
    for share, changes in ((0.0, False), (0.3, True)):
        (tmp_path / str(share)).mkdir()
        made = values(tmp_path, file, data={"source": {"segments": "none", "word_dropout": share}})
        vectors = []
        for steps in (1, 4):
            made["learning"] |= {"steps": steps, "metric": "loss"}
            folder = tmp_path / str(share) / str(steps)
            folder.mkdir()
            run, _ = trained(folder, made)
            weights = sixjars.load(run.folder, device="cpu").network.encoder.state_dict()
            [table] = [weight for name, weight in weights.items() if "embedding" in name]
            vectors.append(table[UNK])
        assert bool((vectors[0] != vectors[1]).any()) == changes


def test_the_share_of_unknown_tokens_is_told(tmp_path: Path, call: Call) -> None:
    run, _ = trained(tmp_path, values(tmp_path, {"a": 40, "b": 40}))
    (tmp_path / "new.jsonl").write_text('{"text": "a b nobody knows", "label": "a"}')
    assert sixjars.evaluate(run.folder, data=tmp_path / "new.jsonl").unknown == 0.5
    said = call("evaluate", run.folder, "--data", tmp_path / "new.jsonl")
    note = "note: 50 % of the input tokens are unknown to the run (<unk>); outputs may be poor."
    assert note in said.err.splitlines()
    for more in ((), ("--json",)):  # with and without details
        said = call("predict", run.folder, "--input", tmp_path / "new.jsonl", *more)
        assert said.err.splitlines() == [note]


# folds


TOLD = (
    "learning.folds: {} models are trained, each scored on the rows that it did not learn from, "
    "then one on all rows, which is kept; its score is the mean of theirs."
)


def test_folds(tmp_path: Path) -> None:
    made = values(tmp_path, {"a": 20, "b": 10}, learning={"folds": 3, "epochs": 3})
    run, said = trained(tmp_path, made)
    expected = [TOLD.format(3), *("fold 1 of 3", "fold 2 of 3", "fold 3 of 3")]
    assert said[:4] == expected
    assert (run.examples, run.where) == (30, f"the 3 folds of {tmp_path / 'rows.jsonl'}")
    files = [tmp_path / f"run/folds/{n}/scores.json" for n in (1, 2, 3)]
    scores = [json.loads(file.read_text())["scores"] for file in files]
    accuracy = [score["accuracy@1"]["value"] for score in scores]
    assert run.scores[0].value == pytest.approx(np.mean(accuracy))
    assert f"mean of 3 folds ± {np.std(accuracy, ddof=1):.4g}" in run.scores[0].signature
    kept = json.loads((tmp_path / "run/scores.json").read_text())
    assert (kept["split"], kept["scores"]["accuracy@1"]["value"]) == ("folds", run.scores[0].value)
    held = [sixjars.evaluate(tmp_path / f"run/folds/{n}") for n in (1, 2, 3)]
    counts = [[row.count for row in fold.classes] for fold in held]
    assert counts == [[7, 3], [7, 3], [6, 4]]
    assert all([row.label for row in fold.classes] == ["a", "b"] for fold in held)
    notes = Notes()
    whole = sixjars.evaluate(tmp_path / "run", reporter=notes)
    listed = ", ".join(f"{score.name} {score.value:.4f}" for score in run.scores)
    learned = "the run learned from all of these rows; in cross-validation, on rows not learned"
    assert notes.lines == [f"{learned} from: {listed}."]
    (tmp_path / "run/scores.json").unlink()
    sixjars.evaluate(tmp_path / "run", reporter=notes)
    assert notes.lines[1] == f"{learned} from: damaged or missing (scores.json)."
    assert (whole.examples, whole.where) == (30, f"the training set of {tmp_path / 'rows.jsonl'}")
    again, _ = trained(tmp_path, made, resume=True)
    assert again.scores == run.scores


def test_folds_that_were_stopped_are_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the run of all rows is begun, only the folders of the folds are there."""
    made = values(tmp_path, {"a": 20, "b": 10}, learning={"folds": 3, "epochs": 1})
    real, left = training._train, 2

    def stopped(*given: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return real(*given, **more)

    monkeypatch.setattr(training, "_train", stopped)
    with pytest.raises(Interrupted, match=r"goes on from what .*/run holds"):
        trained(tmp_path, made)
    monkeypatch.undo()
    before = {n: (tmp_path / f"run/folds/{n}/run.json").stat().st_mtime_ns for n in (1, 2)}
    told = r"run/folds/1 already holds a run. Go on with --resume, or choose"
    with pytest.raises(RunError, match=told):
        trained(tmp_path, made)
    run, said = trained(tmp_path, made, resume=True)
    assert before == {n: (tmp_path / f"run/folds/{n}/run.json").stat().st_mtime_ns for n in (1, 2)}
    assert "fold 3 of 3" in said
    assert not any("to resume yet" in sentence for sentence in said)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rows.jsonl").write_bytes((tmp_path / "rows.jsonl").read_bytes())
    other, _ = trained(tmp_path / "other", made)
    assert [score.value for score in run.scores] == [score.value for score in other.scores]


def test_notes_on_the_data_come_before_the_first_fold(tmp_path: Path) -> None:
    """Once, of all rows: a label that is there twice is alone in the training set of some fold."""
    file = tmp_path / rows(tmp_path, {"a": 12, "b": 9, "c": 2})
    file.write_text('{"text": "one"}\n' + file.read_text(), encoding="utf-8")
    few = {"folds": 2, "epochs": 1}
    made = values(tmp_path, file.name, learning=few, data={"on_bad_row": "skip"})
    _, said = trained(tmp_path, made)
    assert said == [
        TOLD.format(2),
        f"{file}: 1 bad row was skipped. Line 1: column 'label' is unknown. Known: text.",
        *("fold 1 of 2", "fold 2 of 2", "all rows, for as long as was best on average: 4 updates"),
    ]


@pytest.mark.parametrize("ends", [{"steps": None, "epochs": 3}, {"steps": 9, "epochs": None}])
def test_the_kept_model_learns_as_long_as_was_best_on_average(
    ends: dict[str, int | None], tmp_path: Path
) -> None:
    """In updates, also beyond those of a fold, which has fewer rows; never more than allowed."""
    how = {"validate_every": 1, "rate": 0.001, "metric": "loss"}
    learning = {"folds": 3, **ends, **how}
    made = values(tmp_path, {"a": 20, "b": 10}, learning=learning)
    _, said = trained(tmp_path, made)
    folds = [records(tmp_path / f"run/folds/{number}/log.jsonl") for number in (1, 2, 3)]
    best = [min(fold, key=lambda record: record["loss"])["step"] for fold in folds]
    assert best == [9, 9, 9]  # the loss still falls
    if ends["steps"]:
        assert said[-1] == "all rows, for as long as was best on average: 9 updates"
        return
    updates = round(np.mean(best) * 3 / 2)
    assert said[-1] == f"all rows, for as long as was best on average: {updates} updates"
    last = records(tmp_path / "run/log.jsonl")[-1]
    assert last["step"] == updates == 14
    assert last["epoch"] == pytest.approx(np.mean([fold[-1]["epoch"] for fold in folds]), rel=0.2)


@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        ({"steps": None, "epochs": 4}, [3, 6, 9, 12, 15, 18]),
        ({"steps": 12, "epochs": None}, [2, 4, 6, 8, 10, 12]),
    ],
)
def test_the_kept_model_is_the_mean_of_as_late_weights_as_those_of_the_folds(
    ends: dict[str, int | None], kept: list[int], tmp_path: Path
) -> None:
    """Of the folds the best three of six, which here are the last; so of the kept model."""
    how = {**ends, "validate_every": 2, "average": 3, "metric": "loss"}
    table = rows(tmp_path, {"a": 20, "b": 10})
    made = values(tmp_path, table, learning={"folds": 3, "rate": 0.001, **how})
    trained(tmp_path, made)
    for log, steps in (("folds/1/log.jsonl", [2, 4, 6, 8, 10, 12]), ("log.jsonl", kept)):
        assert [record["step"] for record in records(tmp_path / "run" / log)] == steps


def test_a_starter_recipe_with_folds_offers_no_other_split(tmp_path: Path) -> None:
    file = tmp_path / rows(tmp_path, {"a": 30, "b": 30})
    text = sixjars.new(tmp_path / "a.yaml", task="document_classification", data=file).read_text()
    assert "folds: 5" in text
    assert "test: 0.1" not in text
    assert (
        "# learning.folds trains several models; each row is held out by one of them, so no valid "
        "or test" in text
    )


def test_what_is_told_of_folds(call: Call, tmp_path: Path) -> None:
    made = values(tmp_path, {"a": 20, "b": 10}, learning={"folds": 3, "epochs": 3})
    facts: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Notes, "summary", lambda notes, found: facts.append(found.facts["rows"]))
        trained(tmp_path, made)
    once = "over all folds, each row is held out once"
    assert facts == [
        *(f"20 training, 10 held out (fold {n} of 3); {once}" for n in (1, 2, 3)),
        "30 training; validation below is on these same rows, the final score on the folds",
    ]
    rows(tmp_path, {"a": 2, "b": 1})
    file, few = tmp_path / "rows.jsonl", tmp_path / "few.yaml"
    said = call("new", few, "--task", "text_classification", "--data", file)
    assert (
        "3 rows are few, so the recipe cross-validates (learning.folds: 3): a score on a small "
        "part of them would be luck, and the model that is kept learns from all of them. For one "
        "model in about a quarter of the time write `folds: null` and `test: 0.1`.\n"
    ) in said.err
    said = call("train", few, "learning.folds=5", "--out", tmp_path / "few")
    assert said.err.endswith(
        f"sixjars: learning.folds: 5 folds need 5 different inputs or more, but {file} has 3 "
        "different inputs; give more data, or say learning.folds: 3.\n"
    )
    said = call("train", few, "--out", tmp_path / "few")
    assert said.err.endswith(
        f"sixjars: learning.folds: one of the two labels of {file} has one input alone, and "
        "nothing is left to learn it from where that is held out; give it more rows.\n"
    )


def test_folds_are_of_the_training_file(tmp_path: Path) -> None:
    made = values(tmp_path, {"a": 20, "b": 10})
    folds = {**made, "learning": {"folds": 3}, "data": {**made["data"], "test": 0.1}}
    told = r"learning\.folds: the folds are parts of data\.train; name no data\.valid"
    with pytest.raises(RecipeError, match=told):
        trained(tmp_path, folds)
    check_fault(
        made,
        "data.fold=1/3  data.valid=0.1",
        "data: 'fold' is a part of the training file; name no 'valid', 'test', 'split' or "
        "'sample'.",
    )
    told = r"data\.fold: part 4 of 3 cannot be held out; .* has 30 inputs\."
    with pytest.raises(DataError, match=told):
        splits(values(tmp_path, "rows.jsonl", data={"fold": "4/3"}))
