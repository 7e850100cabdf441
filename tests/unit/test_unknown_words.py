"""`search.unknown`: `<unk>` is banned, allowed, or replaced by the word most attended to."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.data.field import Equipment
from sixjars.data.fields.image import ImageField, ImageSettings
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.special_tokens import UNK
from tests.conftest import Call
from tests.unit.conftest import recipe_from_file

Settings = dict[str, Any]


def source_of(**settings: Any) -> TextField:
    return TextField("source", TextSettings(**settings)).learned(
        ["Mr. Smith met her", "he met her. her"]
    )


def target_of(**settings: Any) -> TextField:
    field = TextField("target", TextSettings(**settings)).equipped(Equipment(target_options={}))
    return field.learned(["he saw her. (he saw)", "he saw her"])


WORDS: Settings = {"tokens": "words"}
SPACES: Settings = {"tokens": "words", "split": "spaces"}
LETTERS: Settings = {"tokens": "characters"}
PIECES: Settings = {"tokens": "bpe", "size": 60}


@pytest.mark.parametrize(
    ("source", "target", "text", "positions", "expected"),
    [
        (WORDS, WORDS, "Mr. Kow met Zed.", [4, 2], "he saw Zed Kow"),
        (WORDS, SPACES, "Mr. Kow met Zed.", [4, 2], "he saw Zed Kow"),
        (SPACES, WORDS, "Mr. Kow met Zed.", [2, 3], "he saw met Zed."),
        # as they stand in the source, with a space
        (SPACES, WORDS, "Mr. Kow met Zed.", [1, 2], "he saw Kow met"),
        (SPACES, SPACES, "Mr. Kow met Zed.", [0, 3], "he saw Mr. Zed."),
        (WORDS, PIECES, "Mr. Kow met Zed.", [4, 2], "he saw Zed Kow"),
        (PIECES, WORDS, "her Smith", [0, 1], "he saw her Smith"),
        (LETTERS, WORDS, "xyz", [0, 2], "he saw x z"),
        ({**WORDS, "lowercase": True}, WORDS, "Mr. Kow met Zed.", [4, 2], "he saw zed kow"),
        ({**WORDS, "max_length": 3}, WORDS, "Mr. Kow met Zed.", [0, 2], "he saw Mr Kow"),
        ({**WORDS, "segments": "lines"}, WORDS, "Mr. Kow\nmet Zed.", [4, 2], "he saw Zed Kow"),
    ],
)
def test_the_word_with_the_most_attention(
    source: Settings, target: Settings, text: str, positions: list[int], expected: str
) -> None:
    """Whatever the tokens of both sides are; also a word that the source does not know either."""
    given, output = source_of(**source), target_of(**target)
    begun = output.encoders()["target"].encode(["he saw"])[0]
    weights = [[0.1, 0.2, 0.1, 0.1, 0.05, 0.05]] * len(begun)
    for position in positions:
        weights.append([0.9 if at == position else 0.02 for at in range(6)])
    ids, words = output.replacing_unknown([*begun, UNK, UNK], [*weights, [0.5] * 6], given, text)
    assert output.decode(ids, words) == expected
    assert UNK not in ids


def test_an_image_has_no_words() -> None:
    """Then `<unk>` stays as it is."""
    image = ImageField("image", ImageSettings())
    assert target_of().replacing_unknown([UNK], [[1.0]], image, "a.png") == ([UNK], [])


@pytest.fixture(scope="module", params=[False, True], ids=["without copying", "with copying"])
def predictor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> sixjars.Predictor:
    """Trained where every target ends in a word that is in neither vocabulary nor source."""
    folder = tmp_path_factory.mktemp("unknown")
    pairs = folder / "pairs.tsv"
    rows = [
        f"{'go' if n % 2 else 'see'} s{n} now\t{'geh' if n % 2 else 'sieh'} z{n}\n"
        for n in range(40)
    ]
    pairs.write_text("en\tde\n" + "".join(rows))
    text = {"min_count": 2}
    changes = {
        "data": {"source": text, "target": text},
        "model": {"encoder": {"size": 16}, "decoder": {"size": 16, "copying": request.param}},
        "learning": {"epochs": 30, "rate": 0.03},
        "evaluation": {"search": {"max_length": 6}, "metrics": ["exact_match"]},
    }
    return sixjars.load(
        sixjars.train(recipe_from_file(folder, pairs, changes), out=folder / "run").folder
    )


def words_of(predictor: sixjars.Predictor, **settings: Any) -> list[list[sixjars.Prediction]]:
    search = SearchSettings.model_validate({"max_length": 6, "width": 4, **settings})
    return predictor.nbest(["go qq now", "see s7 now", "go home"], search=search)


@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
def test_unknown_words_of_a_trained_model(kind: str, predictor: sixjars.Predictor) -> None:
    several = {"kind": kind, "nbest": 1 if kind == "greedy" else 3}
    allowed, replaced = (
        words_of(predictor, **several, unknown=unknown) for unknown in ("allow", "replace")
    )
    assert [some[0].text for some in allowed] == ["geh <unk>", "sieh <unk>", "geh <unk>"]
    for given, before, after in zip(
        ("go qq now", "see s7 now", "go home"), allowed, replaced, strict=True
    ):
        for one, other in zip(before, after, strict=True):
            assert (one.score, one.weights) == (other.score, other.weights)
            source = given.split()
            wanted = [
                source[row.index(max(row))] if token == "<unk>" else token
                for token, row in zip(one.tokens, one.weights, strict=True)
            ]
            assert list(other.tokens) == wanted
            assert "<unk>" not in other.text
    for settings in (several, {**several, "unknown": "ban"}):
        found = words_of(predictor, **settings)
        assert all(
            "<unk>" not in one.text and "<unk>" not in one.tokens for some in found for one in some
        )


def test_scores_are_of_replaced_words(predictor: sixjars.Predictor, tmp_path: Path) -> None:
    """Scoring takes the same road: what `predict` prints is what is compared."""
    plain = sixjars.evaluate(predictor.folder, metrics=["seen_in_training"])
    assert "unknown" not in plain.scores[0].signature
    recipe = shutil.copytree(predictor.folder, tmp_path / "run") / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("unknown: ban", "unknown: replace"))
    texts = ["go qq now", "see s7 now"]
    said = [each.text for each in sixjars.load(tmp_path / "run").predict(texts)]
    assert all("<unk>" not in text for text in said)
    rows = [f"{text}\t{output}" for text, output in zip(texts, said, strict=True)]
    (tmp_path / "said.tsv").write_text("\n".join(["en\tde", *rows, ""]))
    data, metrics = tmp_path / "said.tsv", ["exact_match"]
    [score] = sixjars.evaluate(tmp_path / "run", data=data, metrics=metrics).scores
    assert score.value == 1.0
    assert score.signature.endswith("search:greedy,max_length:6,unknown:replace")


def test_words_that_can_be_copied_are_not_called_unknown(
    predictor: sixjars.Predictor, call: Call, request: pytest.FixtureRequest
) -> None:
    copies = request.node.callspec.params["predictor"]
    said = call("predict", predictor.folder, "go qq now")
    assert ("% of the input tokens are unknown to the run (<unk>)" in said.err) is not copies
    assert (predictor.predict(["go qq now"])[0].unknown_tokens == 0) is copies
