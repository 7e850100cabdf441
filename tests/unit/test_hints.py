"""Hints: what people type from habit is understood, and a hint is given only when it is probably right."""

from pathlib import Path

import pytest

import sixjars
from sixjars.evaluation.metrics.table import METRICS
from sixjars.recipe.sections import LearningSettings, Recipe, SearchSettings
from sixjars.tasks import TASKS
from sixjars_runtime.errors import DataError, RecipeError, file_hint, hint

SECTIONS, LEARNING, SEARCH = (
    list(kind.model_fields) for kind in (Recipe, LearningSettings, SearchSettings)
)


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("lr", LEARNING, "rate"),
        ("LR", LEARNING, "rate"),
        ("batch_size", LEARNING, "batch_examples"),
        ("n_epochs", LEARNING, "epochs"),
        ("Epochs", LEARNING, "epochs"),
        ("max_grad_norm", LEARNING, "clip"),
        ("beam_size", SEARCH, "width"),
        ("top-k", SEARCH, "top_k"),
        ("hidden_size", ["cell", "size"], "size"),
        ("BLEU", list(METRICS), "bleu"),
        ("ROUGE-L", list(METRICS), "rougeL"),
        ("WER", list(METRICS), "word_error_rate"),
        ("training", SECTIONS, "learning"),
        ("epochs", SECTIONS, "learning.epochs"),
        ("lr", SECTIONS, "learning.rate"),
        ("batch_size", SECTIONS, "learning.batch_examples"),
        ("encoder", SECTIONS, "model.encoder"),
        ("seed", SECTIONS, "learning.seed"),
        ("sentiment", list(TASKS), "document_classification"),
        ("NLI", list(TASKS), "sentence_pair"),
        ("paraphrase", list(TASKS), "sentence_pair"),
        ("vqa", list(TASKS), "image_question_answering"),
        ("image_recognition", list(TASKS), "image_classification"),
    ],
)
def test_what_people_type(typed: str, known: list[str], meant: str) -> None:
    assert hint(typed, known) == f" Did you mean {meant!r}?"


@pytest.mark.parametrize("known", [SECTIONS, LEARNING])
def test_the_device_is_no_key(known: list[str]) -> None:
    for typed in ("gpu", "device", "cuda"):
        assert hint(typed, known) == (
            " Where to compute is no key of a recipe: say --device cuda (in Python: device='cuda')."
        )
    assert hint("device", ["id", "text"]) == ""  # a column may be called so


@pytest.mark.parametrize(
    ("typed", "known"),
    [("spoon", SECTIONS), ("ner", list(TASKS)), ("de", ["en", "hi"]), ("text", ["label", "id"])],
)
def test_nothing_is_better_than_something_wrong(typed: str, known: list[str]) -> None:
    assert hint(typed, known) == ""


def test_files() -> None:
    assert file_hint("runs/nofile.yaml", ["runs/mine.yaml"]) == ""
    assert file_hint("runs/mien.yaml", ["runs/mine.yaml"]) == " Did you mean 'runs/mine.yaml'?"
    assert file_hint("data.csv", ["data.png", "dat.CSV"]) == " Did you mean 'dat.CSV'?"


def test_in_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("")
    with pytest.raises(DataError, match=r"^recipe file nofile\.yaml does not exist\.$"):
        sixjars.read_recipe("nofile.yaml")
    with pytest.raises(
        RecipeError,
        match=r"key 'epochs' is unknown\. Did you mean 'learning\.epochs'\? Known: data, ",
    ):
        sixjars.read_recipe("dialog/sample_attention", ["epochs=3"])
    with pytest.raises(
        RecipeError,
        match=r"learning: key 'gpu' is unknown\. Where to compute is no key of a recipe",
    ):
        sixjars.read_recipe("dialog/sample_attention", ["learning.gpu=true"])


def test_devices() -> None:
    with pytest.raises(RecipeError) as caught:
        sixjars.train("dialog/sample_attention", device="gpu")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "the command line: device 'gpu' is unknown. Did you mean 'cuda'? Known: auto, cpu, cuda, mps."
    )
