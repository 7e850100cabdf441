"""A tokenizer from a file: ids, special tokens, what is kept in a run, what is refused."""

import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import sixjars
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.flat import segment_ids
from sixjars.data.text.tokenizer import flat_ids, tokenizer_of_file
from sixjars.errors import DataError, MissingExtra, RunError
from sixjars_runtime.special_tokens import PAD, SPECIAL, STOP, UNK
from sixjars_runtime.text.tokenizer_files import GivenTokenizer

from .tokenizers import vocabulary

TEXTS = ["the cat sat on the mat", "a dog ran far away", "the dog sat"] * 5
NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def wordpiece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=60, special_tokens=NAMES, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=9)
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=40, special_tokens=["<s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def bytes_bpe() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def read(tmp_path: Path, tokenizer: Tokenizer) -> GivenTokenizer:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tokenizer_of_file(tmp_path / "tokenizer.json", "data.source.tokens")


@pytest.mark.parametrize("made", [wordpiece, unigram, bytes_bpe])
def test_round_trip(made: Any, tmp_path: Path) -> None:
    tokenizer = read(tmp_path, made())
    again = GivenTokenizer.from_json(tokenizer.to_json())
    for text in TEXTS[:3]:
        ids = tokenizer.encode(text)
        assert UNK not in ids
        assert min(ids) >= len(SPECIAL)
        assert max(ids) < tokenizer.size
        assert tokenizer.decode([*ids, STOP, PAD]) == text == tokenizer.normalize(f"  {text}\n")
        assert again.encode(text) == ids
        assert [vocabulary(tokenizer)[name] for name in tokenizer.split(text)] == ids
        assert len(tokenizer.word_index([text])[0]) >= len(text.split())


def test_special_tokens_are_ours_alone(tmp_path: Path) -> None:
    tokenizer = read(tmp_path, wordpiece())
    assert not set(NAMES) & set(vocabulary(tokenizer))
    assert len(tokenizer.encode("the cat sat on the mat")) == 6  # neither framed nor cut nor padded
    assert tokenizer.encode("жук") == [UNK]
    assert tokenizer.decode([UNK]) == "<unk>"
    assert tokenizer.normalize("The CAT") == "the cat"
    assert STOP not in tokenizer.encode("[SEP] [CLS] [PAD]")
    assert len(segment_ids(partial(flat_ids, tokenizer), [["the cat", "sat"]])[0]) == 5
    cat = tokenizer.encode("cat")[0]
    assert tokenizer.decode([cat, tokenizer.size + 1], ["a", "жук"]) == "cat жук"
    assert tokenizer.by_word()["cat"] == [cat]
    assert tokenizer.tokens([cat, STOP]) == ["cat", "<stop>"]


def test_a_run_is_complete_without_the_file(tmp_path: Path) -> None:
    wordpiece().save(str(tmp_path / "tokenizer.json"))
    own = {"tokens": {"file": "tokenizer.json"}}
    recipe: dict[str, Any] = {
        "task": "translation",
        "data": {
            "folder": str(tmp_path),
            "source": {"column": "a", **own},
            "target": {"column": "b", **own},
        },
        "learning": {"epochs": 1},
        "evaluation": {"search": {"max_length": 5}, "metrics": ["bleu"]},
    }
    rows = [
        {"a": text, "b": text}
        for text in {f"the {one} {two}" for one in TEXTS for two in ("sat", "ran", "far")}
    ]
    run = sixjars.train(recipe, data={"train": rows, "valid": rows[:3]}, out=tmp_path / "run")
    (tmp_path / "tokenizer.json").unlink()
    found = sixjars.load(sixjars.pack(run, tmp_path / "x.sixjars")).predict("the dog")
    assert found.source == ("the", "dog")
    assert found.error is None
    (run.folder / "fields" / "source.json").write_text('{"format": 1, "kind": "file"}')
    told = r"is damaged: The saved tokenizer is damaged or of another version: "
    with pytest.raises(RunError, match=told):
        sixjars.load(run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "{}",
            "is not a tokenizer.json of Hugging Face or a SentencePiece model, or damaged: "
            "'model'.",
        ),
        ("{", "or damaged: Expecting property name"),
        ('{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "or damaged: it has no tokens."),
        ('{"model": {"type": "Wrong"}}', "or damaged: "),
    ],
)
def test_files_that_are_none(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        tokenizer_of_file(path, "data.source.tokens")
    assert str(caught.value).startswith(f"data.source.tokens: {path} is not ")
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json does not exist\.$"):
        tokenizer_of_file(tmp_path / "none.json", "data.source.tokens")


def test_half_a_character(tmp_path: Path) -> None:
    told = r"holds half a character \(a lone surrogate\); remove it\.$"
    with pytest.raises(DataError, match=told):
        read(tmp_path, wordpiece()).encode("a\udce9")


@pytest.mark.parametrize(
    "damage", [{"format": 9}, {"library": "pickle"}, {"content": "%"}, {"content": "e30="}]
)
def test_damaged_runs(damage: dict[str, Any], tmp_path: Path) -> None:
    whole = json.loads(read(tmp_path, wordpiece()).to_json())
    with pytest.raises(RunError, match=r"^The saved tokenizer is damaged or of another version: "):
        GivenTokenizer.from_json(json.dumps(whole | damage))


# SentencePiece


def test_sentencepiece_must_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    (tmp_path / "spm.model").write_bytes(b"\n\x0e\n\x05<unk>")
    told = r"^sentencepiece is not installed\. Run: pip install 'sixjars\[sentence"
    with pytest.raises(MissingExtra, match=told):
        tokenizer_of_file(tmp_path / "spm.model", "data.source.tokens")


class Processor:
    """As the library's, with words for pieces."""

    def __init__(self, model_proto: bytes) -> None:
        self.pieces = model_proto.decode().split()

    def get_piece_size(self) -> int:
        return len(self.pieces)

    def id_to_piece(self, number: int) -> str:
        return self.pieces[number]

    def unk_id(self) -> int:
        return self.pieces.index("<unk>")

    def is_control(self, number: int) -> bool:
        return self.pieces[number] in ("<s>", "</s>")

    def encode(self, texts: list[str]) -> list[list[int]]:
        known = {piece: number for number, piece in enumerate(self.pieces)}
        return [[known.get(f"▁{word}", self.unk_id()) for word in text.split()] for text in texts]

    def decode(self, ids: list[int]) -> str:
        return "".join(self.pieces[number] for number in ids).replace("▁", " ").strip()


def test_sentencepiece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = ModuleType("sentencepiece")
    library.SentencePieceProcessor = Processor
    monkeypatch.setitem(sys.modules, "sentencepiece", library)
    (tmp_path / "spm.model").write_bytes("<unk> <s> </s> ▁the ▁cat".encode())
    settings = TextSettings(tokens={"file": str(tmp_path / "spm.model")})  # type: ignore[arg-type]
    field = TextField("source", settings).learned([])
    assert field.tokenizer.size == 6
    assert field.tokenizer.encode("the cat </s> dog") == [4, 5, UNK, UNK]
    again = field.restored(field.to_json())
    assert again.decode([4, 5, STOP]) == "the cat"
