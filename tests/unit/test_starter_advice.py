"""What is advised where a model is no better than a baseline can be followed on every recipe that `new` writes."""

import shlex
from pathlib import Path

import pytest
import torch

from sixjars.model.build import build
from sixjars.recipe.files import flat, packaged
from sixjars.runs.baselines import advice
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.runs.training.network import fresh_network
from sixjars.starter.write import new
from tests.untidy.files import article, english, german, headline, review, sentiment

STARTERS = {
    "document_classification": ("labels", "text\tlabel", review, sentiment),
    "sentence_pair": (
        "pairs",
        "sentence1\tsentence2\tlabel",
        lambda n: f"{english(n)}\t{english(n + n % 3)}",
        sentiment,
    ),
    "translation": ("texts", "source\ttarget", english, german),
    "summarization": ("texts", "document\tsummary", article, headline),
    "dialog": ("texts", "source\ttarget", english, review),
    "transliteration": (
        "texts",
        "source\ttarget",
        lambda n: f"wa{'ab'[n % 2]}{n}",
        lambda n: f"v{n}",
    ),
}
"""The topic of a task, and the columns of a table for it."""


@pytest.fixture(params=STARTERS)
def starter(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The topic of a starter recipe, and its file."""
    topic, header, first, second = STARTERS[request.param]
    rows = [f"{first(n)}\t{second(n)}" for n in range(120)]
    (tmp_path / "data.tsv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return topic, str(new(tmp_path / "new.yaml", task=request.param, data=tmp_path / "data.tsv"))


WITHOUT_VECTORS = {
    ".vectors": "null",
    ".extra_words": "0",
    ".embedding.frozen": "false",
    ".standardize": "false",
    ".freeze": "[]",
}


@pytest.mark.parametrize("without", [{}, WITHOUT_VECTORS], ids=["as written", "without vectors"])
def test_each_piece_of_advice_builds_a_network(
    starter: tuple[str, str], without: dict[str, str]
) -> None:
    topic, file = starter
    keys = flat(read_recipe(file).model_dump(mode="json"))
    usual = [
        f"{key}={value}" for key in keys for end, value in without.items() if key.endswith(end)
    ]
    values = flat(read_recipe(file, usual).model_dump(mode="json"))
    assert [*advice.SMALLER.changes(values)]
    for one in {*advice.ADVICE[topic], advice.SMALLER} - {advice.UPDATES}:
        if changes := shlex.split(" ".join(one.changes(values))):
            blueprint = Blueprint.of(read_recipe(file, [*usual, *changes]))
            assert fresh_network(blueprint, splits_of(blueprint)), changes


@pytest.mark.parametrize("name", packaged())
def test_a_packaged_recipe_may_be_smaller(name: str) -> None:
    changes = [*advice.SMALLER.changes(flat(read_recipe(name).model_dump(mode="json")))]
    blueprint = Blueprint.of(read_recipe(name, changes))
    fields = blueprint.fields.mapped(lambda field: field.assumed())
    with torch.device("meta"):
        assert build(blueprint.plan, fields.facts(), fresh=False), changes


def test_the_sizes_of_a_bag_of_words_go_together(tmp_path: Path) -> None:
    rows = "".join(f"{review(n)}\t{sentiment(n)}\n" for n in range(120))
    (tmp_path / "data.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    file = new(tmp_path / "new.yaml", task="document_classification", data=tmp_path / "data.tsv")
    recipe = read_recipe(str(file), ["model.encoder.embedding.size=32", "model.decoder.size=48"])
    assert advice.SMALLER.for_recipe(recipe) == (
        "a smaller model (model.encoder.ngrams.size=8 model.decoder.size=40)"
    )
    plain = read_recipe(
        str(file),
        [
            "model.encoder.embedding.size=32",
            "model.decoder.size=48",
            "data.source.vectors=null",
            "data.source.extra_words=0",
            "model.encoder.standardize=false",
            "model.decoder.dropout=0",
        ],
    )
    assert advice.VECTORS.for_recipe(plain).endswith(
        "(data.source.vectors=wordllama model.encoder.embedding.size=256 model.decoder.size=272)"
    )
    assert advice.DROPOUT.for_recipe(plain) == "more dropout (model.decoder.dropout=0.5)"
