"""Pretrained vectors of a package for any vocabulary, and words that training has not seen."""

import json
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import sixjars
from sixjars.data.text.vectors import projected, words_in
from sixjars.data.text.wordllama import (
    NAME,
    SPREAD,
    TOKENIZER,
    WEIGHTS,
    package_folder,
    piece_vectors,
)
from sixjars.errors import DataError, MissingExtra
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars.runs.training.network import fresh_network
from sixjars_runtime.special_tokens import UNK

from .faults import check_fault, entries

MERGES = (
    "▁+c ▁c+a ▁ca+t ▁+s ▁+S a+t ▁S+at ▁s+i ▁si+t ▁S+i ▁Si+t ▁+t ▁t+he ▁+, h+e ▁+d ▁d+o ▁do+g ▁+D"
)
PIECES = "<unk> <s> </s> <0xF0> <0x9F> <0x90> <0x88> ▁ a c t s S i h e , d D o g".split()
PIECES += list(dict.fromkeys(pair.replace("+", "") for pair in MERGES.split()))
FACTOR = SPREAD / numpy.eye(len(PIECES)).std()
"""What ones become: all vectors together have the spread that was asked for."""


def written(folder: Path, values: Any = None, tokenizer: str | None = None) -> Path:
    """A package whose pieces have a number of their own each, so that a vector tells its pieces.

    It cannot be imported.
    """
    package = folder / NAME
    for name in (WEIGHTS, TOKENIZER):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("raise RuntimeError('not to be imported')\n")
    values = numpy.eye(len(PIECES), dtype=numpy.float16) if values is None else values
    save_file({"embedding.weight": values}, package / WEIGHTS)
    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    pairs = [(first, second) for first, second in (pair.split("+") for pair in MERGES.split())]
    unknown = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    made = Tokenizer(models.BPE(vocabulary, pairs, **unknown))
    steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    made.normalizer = normalizers.Sequence(steps)
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    content = made.to_str() if tokenizer is None else tokenizer
    (package / TOKENIZER).write_text(content, encoding="utf-8")
    return package


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package is installed, in place of a true one."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return written(folder)


def vector(**pieces: float) -> list[float]:
    """The vector that has these pieces with these weights; `_` stands for `▁`."""
    row = [0.0] * len(PIECES)
    for piece, weight in pieces.items():
        row[PIECES.index(piece.replace("_", "▁"))] = weight * FACTOR
    return row


def of_tokens(*tokens: str) -> dict[str, list[float]]:
    values, places = piece_vectors().of_tokens(tokens)
    assert values.dtype == numpy.float32
    return {tokens[place]: row for place, row in zip(places, values.tolist(), strict=True)}


def same(found: Mapping[str, list[float]], **expected: list[float]) -> None:
    assert list(found) == list(expected)
    for word, row in expected.items():
        numpy.testing.assert_allclose(found[word], row, rtol=1e-5, err_msg=word)


@pytest.mark.usefixtures("package")
def test_a_word_of_one_piece_has_its_vector_and_another_those_of_its_pieces() -> None:
    """`Tat` keeps this vocabulary from having no capitals. Two pieces are as long as one."""
    half = 0.5**0.5
    found = of_tokens("cat", "cats", "Tat")
    same(
        {word: found[word] for word in ("cat", "cats")},
        cat=vector(_cat=1),
        cats=vector(_cat=half, s=half),
    )
    assert numpy.linalg.norm(found["cats"]) == pytest.approx(numpy.linalg.norm(found["cat"]))


@pytest.mark.usefixtures("package")
def test_a_vocabulary_without_capitals_takes_the_spellings_of_fewest_pieces() -> None:
    """`Sat` is one piece, `sat` two; `sit` and `Sit` are one each; of `dog` only the small one."""
    same(
        of_tokens("sat", "sit", "dog"),
        sat=vector(_Sat=1),
        sit=vector(_sit=0.5, _Sit=0.5),
        dog=vector(_dog=1),
    )


@pytest.mark.usefixtures("package")
def test_a_vocabulary_with_capitals_takes_each_word_as_it_is_spelled() -> None:
    half = 0.5**0.5
    same(of_tokens("sat", "Sat"), sat=vector(_s=half, at=half), Sat=vector(_Sat=1))


@pytest.mark.usefixtures("package")
def test_what_says_nothing_about_a_word_has_no_vector() -> None:
    """Bytes of a letter, a blank alone, unknown pieces; beside others they are left out."""
    same(
        of_tokens("🐈", "▁", "cat🐈", "<s>"),
        **{"cat🐈": vector(_cat=1), "<s>": of_tokens("<s>")["<s>"]},
    )
    assert not any(of_tokens("<s>")["<s>"][:3])
    assert of_tokens() == of_tokens("🐈") == {}


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(("word", "inside"), [("▁cat", "at"), ("Ġcat", "at"), ("cat", "##at")])
def test_what_is_inside_of_a_word_is_looked_up_without_a_blank(word: str, inside: str) -> None:
    same(of_tokens(word, inside), **{word: vector(_cat=1), inside: vector(at=1)})


def test_all_numbers_together_have_the_spread_of_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a vector that was longer than another still is, as many times."""
    rows = numpy.random.default_rng(0).normal(0, 7, (len(PIECES), 5)).astype(numpy.float16)
    written(tmp_path, rows)
    monkeypatch.syspath_prepend(tmp_path)
    pieces = piece_vectors()
    assert pieces.values_PE.std() == pytest.approx(SPREAD, rel=1e-3)
    lengths = [
        numpy.linalg.norm(values.astype(float), axis=1) for values in (pieces.values_PE, rows)
    ]
    numpy.testing.assert_allclose(lengths[0] / lengths[0][0], lengths[1] / lengths[1][0], rtol=1e-5)


@pytest.mark.usefixtures("package")
def test_words_of_one_piece_are_those_of_letters() -> None:
    assert piece_vectors().whole_words == "c ca cat s S Sat si sit Si Sit t the d do dog D".split()


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, NAME, None)
    told = r"^wordllama is not installed\. Run: pip install 'sixjars\[vectors\]'$"
    with pytest.raises(MissingExtra, match=told):
        package_folder()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("missing", "No such file"),
        ("tokenizer", "expected"),
        ("weights", ""),
        ("rows", f"{len(PIECES)} pieces, but numbers of the shape 3×4"),
    ],
)
def test_a_damaged_package(fault: str, told: str, package: Path) -> None:
    if fault == "missing":
        (package / WEIGHTS).unlink()
    elif fault == "tokenizer":
        (package / TOKENIZER).write_text("no JSON")
    elif fault == "weights":
        (package / WEIGHTS).write_bytes(b"no numbers")
    else:
        save_file({"embedding.weight": numpy.zeros((3, 4), numpy.float16)}, package / WEIGHTS)
    with pytest.raises(DataError) as raised:
        piece_vectors()
    sentence = str(raised.value)
    assert sentence.startswith(f"the package wordllama in {package} cannot be read ("), sentence
    assert told in sentence
    assert sentence.endswith(". Run: pip install --force-reinstall 'sixjars[vectors]'")


def test_principal_components_are_those_of_a_singular_value_decomposition() -> None:
    random = numpy.random.default_rng(0)
    values = (random.normal(size=(50, 6)) * [5, 0.1, 3, 0.2, 1, 0.3] + 2).astype(numpy.float32)
    reduced = projected(values, 3)
    centred = values - values.mean(0)
    left, lengths, right = numpy.linalg.svd(centred, full_matrices=False)
    expected = (left * lengths)[:, :3] * numpy.sign(right[range(3), numpy.abs(right[:3]).argmax(1)])
    assert reduced.dtype == numpy.float32
    numpy.testing.assert_allclose(reduced, expected, atol=1e-4)


TEXTS = [("the cat sat", "x"), ("the cat, the dog", "y"), ("the cats", "x"), ("a dog", "y")] * 4


def data_of(folder: Path, file: str, lines: Iterable[str]) -> dict[str, Any]:
    """The data of a recipe: a table with labels, to learn from and to be validated on."""
    (folder / file).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return {"folder": str(folder), "train": file, "valid": file, "label": {"column": "label"}}


def values(folder: Path, width: int = len(PIECES), **source: Any) -> dict[str, Any]:
    data = data_of(folder, "rows.tsv", ["text\tlabel", *map("\t".join, TEXTS)])
    return {
        "task": "document_classification",
        "data": {**data, "source": {"column": "text", "vectors": NAME, **source}},
        "model": {"encoder": {"kind": "text", "size": 4, "embedding": {"size": width}}},
        "learning": {"epochs": 1, "batch_examples": 8},
    }


def rows_of(recipe: dict[str, Any]) -> tuple[Any, torch.Tensor]:
    """The tokenizer that a recipe learns, and the embedding that a new network has."""
    blueprint = Blueprint.of(recipe_of(recipe, "a test"))
    splits = splits_of(blueprint)
    network = fresh_network(blueprint, splits)
    table = network.encoder.get_parameter("embedding.table.weight").detach()
    return splits.fields.inputs["source"], table


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("tokens", ["words", "bpe", "unigram"])
def test_tokens_of_every_vocabulary_start_from_the_package(tokens: str, tmp_path: Path) -> None:
    field, table = rows_of(values(tmp_path, tokens=tokens))
    [number] = field.tokenizer.encode("cat")
    assert table[number].tolist() == pytest.approx(vector(_cat=1))
    assert table[UNK].abs().sum() > 0
    assert abs(table[UNK]).max() < 1  # learned, from what every embedding begins with


@pytest.mark.usefixtures("package")
def test_tokens_of_a_file_start_from_the_package(tmp_path: Path) -> None:
    names = ["[UNK]", "[CLS]", "cat", "##s", "the", "sat", "dog", "a"]
    pieces = {piece: number for number, piece in enumerate(names)}
    given = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    given.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    given.add_special_tokens(["[UNK]", "[CLS]"])
    given.save(str(tmp_path / "mine.json"))
    field, table = rows_of(values(tmp_path, tokens={"file": "mine.json"}))
    cat, ending = field.tokenizer.encode("cats")
    assert table[cat].tolist() == pytest.approx(vector(_cat=1))
    assert table[ending].tolist() == pytest.approx(vector(s=0.5, S=0.5))


@pytest.mark.usefixtures("package")
def test_a_size_that_the_vectors_do_not_have(tmp_path: Path) -> None:
    width, where = len(PIECES), "model.encoder.embedding.size"
    has = f"but the vectors of data.source.vectors have {width} numbers; say {where}: {width}"
    project = ", or data.source.project_vectors: true to keep their first 8 principal components."
    for size, remedy in ((8, project), (99, ".")):
        with pytest.raises(DataError) as raised:
            rows_of(values(tmp_path, size))
        assert str(raised.value) == f"{where} is {size}, {has}{remedy}"
    with pytest.raises(DataError, match=rf"{where} is 99, "):
        rows_of(values(tmp_path, 99, project_vectors=True))


@pytest.mark.usefixtures("package")
def test_a_smaller_size_keeps_the_principal_components(tmp_path: Path) -> None:
    """Distances between words are nearly kept, for they lie in few directions."""
    field, whole = rows_of(values(tmp_path))
    _, small = rows_of(values(tmp_path, 8, project_vectors=True))
    ids = [field.tokenizer.encode(word)[0] for word in ("cat", "dog", "the", "sat")]
    numpy.testing.assert_allclose(
        torch.cdist(small[ids], small[ids]), torch.cdist(whole[ids], whole[ids]), atol=1e-3
    )


def test_files_may_be_reduced_too(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("cat 1 2 3\nthe 4 5 7\ndog 9 8 8\n", encoding="utf-8")
    field, table = rows_of(values(tmp_path, 2, vectors="v.txt", project_vectors=True))
    ids = [field.tokenizer.encode(word)[0] for word in ("cat", "the", "dog")]
    whole = numpy.array([[1, 2, 3], [4, 5, 7], [9, 8, 8]], numpy.float32)
    numpy.testing.assert_allclose(table[ids], projected(whole, 2), rtol=1e-4)


FILE = "the 1 1\nDog 2 2\nNew York 3 3\nfox-trot 4 4\nFox 5 5\nfox 6 6\nowl 7 7\nelk 8 8\n"


def test_words_of_a_file_in_its_order(tmp_path: Path) -> None:
    for name, header in (("glove.txt", ""), ("word2vec.txt", "8 2\n")):
        (tmp_path / name).write_text(header + FILE, encoding="utf-8")
        words = [line.rsplit(" ", 2)[0] for line in FILE.splitlines()]
        assert list(words_in(tmp_path / name)) == words


@pytest.mark.parametrize(("lowercase", "extra"), [(True, ["fox", "owl"]), (False, ["Dog", "Fox"])])
def test_extra_words_are_the_first_ones_that_training_lacks(
    lowercase: bool, extra: list[str], tmp_path: Path
) -> None:
    """Beyond `size`; what no text has as one token is passed over."""
    (tmp_path / "v.txt").write_text(FILE, encoding="utf-8")
    recipe = values(tmp_path, 2, vectors="v.txt", lowercase=lowercase, size=7)
    before, _ = rows_of(recipe)
    recipe["data"]["source"]["extra_words"] = 2
    field, table = rows_of(recipe)
    assert before.tokenizer.size == 7
    assert field.tokenizer.size == len(table) == 9
    assert field.tokenizer.tokens(range(9)) == [*before.tokenizer.tokens(range(7)), *extra]
    ids = field.tokenizer.encode(" ".join(extra))
    assert ids == [7, 8]
    assert table[ids].tolist() == ([[6, 6], [7, 7]] if lowercase else [[2, 2], [5, 5]])


@pytest.mark.usefixtures("package")
def test_extra_words_are_known_when_they_come_and_the_run_needs_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sit` is in no training text; its vector is that of the package."""
    run = sixjars.train(values(tmp_path, extra_words=7), out=tmp_path / "run", device="cpu").folder
    monkeypatch.setitem(sys.modules, NAME, None)
    with pytest.raises(MissingExtra):
        package_folder()
    loaded = sixjars.load(run, device="cpu")
    assert loaded.predict("sit cats owl").source == ("sit", "cats", "<unk:owl>")
    field: Any = loaded.fields.inputs["source"]
    [number] = field.tokenizer.encode("sit")
    table = load_file(run / "model.safetensors")["encoder.embedding.table.weight"]
    assert table[number].tolist() == pytest.approx(vector(_sit=1))
    assert field.tokenizer.tokens(range(field.tokenizer.size))[-3:] == ["Sat", "si", "sit"]


def pair(folder: Path, **both: Any) -> dict[str, Any]:
    """A recipe for two texts, the second of which has words that the first has not."""
    rows = [f"the cat\tthe dog sat\t{label}" for label in "xyxy"]
    data = data_of(folder, "pairs.tsv", ["one\ttwo\tlabel", *rows])
    names = {"sentence1": "one", "sentence2": "two"}
    texts = {name: {"column": column, "vectors": NAME, **both} for name, column in names.items()}
    return {"task": "sentence_pair", "data": data | texts}


@pytest.mark.usefixtures("package")
def test_two_texts_have_the_same_extra_words(tmp_path: Path) -> None:
    recipe = recipe_of(pair(tmp_path, extra_words=100, lowercase=True), "a test")
    fields: Any = splits_of(Blueprint.of(recipe)).fields.inputs
    first, second = (fields[name].tokenizer for name in ("sentence1", "sentence2"))
    assert first.to_json() == second.to_json()
    words = first.tokens(range(4, first.size))
    assert sorted(words) == sorted({word.lower() for word in piece_vectors().whole_words})


def test_new_training_data_and_extra_words_have_room_in_a_run_that_goes_on(tmp_path: Path) -> None:
    """`yak` is new in the second data, `elk` is an extra word of both."""
    (tmp_path / "v.txt").write_text(FILE, encoding="utf-8")
    recipe = values(tmp_path, 2, vectors="v.txt", extra_words=9)
    first = sixjars.train(recipe, out=tmp_path / "first", device="cpu").folder
    (tmp_path / "more.tsv").write_text("text\tlabel\n" + "a yak\tx\nthe dog\ty\n" * 8)
    more = {**recipe, "data": {**recipe["data"], "train": "more.tsv", "valid": "more.tsv"}}
    second = sixjars.train(more, from_run=first, out=tmp_path / "second", device="cpu").folder
    for run, word in ((first, "<unk:yak>"), (second, "yak")):
        read = sixjars.load(run, device="cpu").predict("cat yak elk").source
        assert read == ("cat", word, "elk")


FAULTS = """
data.source.vectors=null  data.source.extra_words=5
    data.source.extra_words: takes words from data.source.vectors, which must be a file or
    wordllama, but is not given; give it, or say extra_words: 0.
data.source.vectors=sample  data.source.extra_words=5
    data.source.extra_words: takes words from data.source.vectors, which must be a file or
    wordllama, but is sample; give it, or say extra_words: 0.
data.source.tokens=bpe  data.source.extra_words=5
    data.source.extra_words: is for tokens: words, but data.source.tokens is bpe; remove it, or say
    data.source.extra_words=0.
data.source.vectors=null  data.source.project_vectors=true
    data.source.project_vectors: is for pretrained vectors, but data.source.vectors names none;
    remove it.
"""


@pytest.mark.parametrize(("overrides", "sentence"), entries(FAULTS))
def test_settings_that_do_not_fit(overrides: str, sentence: str, tmp_path: Path) -> None:
    check_fault(values(tmp_path), overrides, sentence)


def test_two_texts_of_one_vocabulary_agree_about_extra_words(tmp_path: Path) -> None:
    told = "data.sentence1 and data.sentence2 have one vocabulary; give them the same extra_words."
    check_fault(pair(tmp_path), "data.sentence1.extra_words=5", told)


def test_an_output_has_no_extra_words() -> None:
    data = {"train": "a.tsv", "source": {"column": 1}, "target": {"column": 2, "vectors": NAME}}
    check_fault(
        {"task": "translation", "data": data},
        "data.target.extra_words=5",
        "data.target.extra_words: only an input has extra words, for an output learns none of "
        "them; remove it.",
    )


def test_a_missing_package_is_told_before_the_texts_are_gone_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, NAME, None)
    field = Blueprint.of(recipe_of(values(tmp_path), "a test")).fields.inputs["source"]
    with pytest.raises(MissingExtra):
        field.learned(repeat("a cat"))  # texts without an end


@pytest.mark.skipif(find_spec(NAME) is None, reason="wordllama is not installed")
def test_the_true_package() -> None:
    """A word of one piece has its row, and words of one kind lie closer than others."""
    words = ["Paris", "London", "stock", "market", "shares", "football"]
    values, places = piece_vectors().of_tokens(words)
    assert places == [0, 1, 2, 3, 4, 5]
    unit = values / numpy.linalg.norm(values, axis=1, keepdims=True)
    alike = unit @ unit.T
    assert alike[0, 1] > max(alike[0, 2:])
    assert alike[2, 4] > alike[2, 5]
    tokenizer = json.loads((package_folder() / TOKENIZER).read_text(encoding="utf-8"))
    [raw] = load_file(package_folder() / WEIGHTS).values()
    paris = raw[tokenizer["model"]["vocab"]["▁Paris"]]
    numpy.testing.assert_allclose(values[0] / values[0, 0], paris / paris[0], rtol=0.01)
    assert len(piece_vectors().whole_words) > 10_000
    assert NAME not in sys.modules
