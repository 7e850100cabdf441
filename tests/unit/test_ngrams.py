"""Words and pairs of words as a linear classifier of TF-IDF vectors has them, and what is learned from them."""

import json
import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor

import sixjars
from sixjars.errors import RecipeError
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Batch, Padded
from sixjars.learning.checkpoints import load_tensors
from sixjars.learning.engine import optimizer_for
from sixjars.model import frequencies
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.build import Network
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.encoders.bag import FACTORS, SCALE, BagEncoder, NgramVectors
from sixjars.model.encoders.pair import PairEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.frequencies import FeatureCounts
from sixjars.model.layers import WordEmbedding
from sixjars.serving.web.parts import SCRIPT
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.conftest import Call

TRAINING = ["a good film", "not a good film at all", "a bad film", "not bad not bad at all", "good"]
OTHERS = ["not good at all", "a strange bad good film film", "strange", "", "at at at"]
NAMES = {
    word: 4 + at
    for at, word in enumerate(sorted({word for text in TRAINING for word in text.split()}))
}
UNK = 3
LABELS = Padded.of([[1], [0], [0], [1], [1]])
"""Whether each text of TRAINING praises."""


def padded(texts: Sequence[str]) -> Padded:
    """The ids of words; a word that no training text has is unknown."""
    return Padded.of([[NAMES.get(word, UNK) for word in text.split()] for text in texts])


def counted(buckets: int = 5000, size: int = 3) -> NgramVectors:
    """After counting, without dropout."""
    vectors = NgramVectors(vocabulary=4 + len(NAMES), size=size, buckets=buckets).eval()
    vectors.count([(padded(TRAINING), LABELS)])
    return vectors


def rows_of(vectors: NgramVectors, texts: Sequence[str]) -> Tensor:
    """The evidence of texts."""
    given = padded(texts)
    found: Tensor = vectors(given.values, given.mask)
    return found.detach()


def test_it_is_a_linear_map_of_the_vectors_of_scikit_learn() -> None:
    """With the norm too; a collision of two pairs would be seen."""
    library = pytest.importorskip("sklearn.feature_extraction.text")
    vectorizer = library.TfidfVectorizer(
        ngram_range=(1, 2), token_pattern=r"\S+", sublinear_tf=True
    )
    known = vectorizer.fit(TRAINING).vocabulary_
    vectors = counted()
    rows, pairs = np.zeros((len(known), 3)), set()
    for name, at in known.items():
        text = padded([name])
        words, hashed = vectors.features(text.values, text.mask)
        table, number = (
            (vectors.pairs, hashed[0, 0]) if " " in name else (vectors.words, words[0, 0])
        )
        rows[at] = table.weight[number].detach().numpy()
        pairs |= {int(number)} if " " in name else set()
    assert len(pairs) == sum(" " in name for name in known)  # none collides with another
    for given in [*TRAINING, *OTHERS]:
        weights = vectorizer.transform([given]).toarray()[0]
        wanted = SCALE * weights @ rows
        np.testing.assert_allclose(
            rows_of(vectors, [given])[0].numpy(), wanted, rtol=1e-4, atol=1e-5
        )


def test_unknown_words_padding_and_the_ends_of_sentences_weigh_nothing() -> None:
    vectors = counted()
    assert not rows_of(vectors, ["", "strange", "strange strange"]).any()
    alone, among = rows_of(vectors, ["good film"]), rows_of(vectors, ["good film", "a " * 9])
    torch.testing.assert_close(alone[0], among[0])
    torch.testing.assert_close(rows_of(vectors, ["strange good film strange"]), alone)
    assert not torch.allclose(rows_of(vectors, ["good strange film"]), alone)  # which is no pair
    given = padded(["good film"])
    junk = Padded(
        torch.tensor([[*given.values[0].tolist(), 5, 6]]),
        torch.tensor([[True, True, False, False]]),
    )
    torch.testing.assert_close(vectors(junk.values, junk.mask), alone)


def test_counting_in_batches_is_counting_at_once() -> None:
    whole, parts = counted(), NgramVectors(vocabulary=4 + len(NAMES), size=3, buckets=5000)
    places = (slice(2), slice(2, 3), slice(3, None))
    parts.count([(padded(TRAINING[at]), LABELS) for at in places])
    for name in ("word_weights", "pair_weights"):
        assert torch.equal(getattr(parts, name), getattr(whole, name))
    assert not whole.pair_weights[0]


def ratio_by_hand(texts: Sequence[set[str]], labels: Sequence[int], feature: str) -> float:
    """The greatest log ratio over the labels of texts that have a feature, with 4 texts more."""
    total, ratios = len(texts), [0.0]
    for label in {own for text, own in zip(texts, labels, strict=True) if feature in text}:
        inside = [text for text, own in zip(texts, labels, strict=True) if own == label]
        outside = [text for text, own in zip(texts, labels, strict=True) if own != label]
        shares = [
            (sum(feature in text for text in part) + 4 * len(part) / total) / (len(part) + 4)
            for part in (inside, outside)
        ]
        ratios.append(math.log(shares[0] / shares[1]))
    return max(ratios)


def test_words_that_tell_a_label_weigh_more() -> None:
    vectors = NgramVectors(vocabulary=4 + len(NAMES), size=3, buckets=5000, weigh_by="labels")
    plain = counted()
    parts = [(slice(2), [1, 0]), (slice(2, None), [0, 1, 1])]
    vectors.count(
        [(padded(TRAINING[at]), Padded.of([[each] for each in own])) for at, own in parts]
    )
    labels = [1, 0, 0, 1, 1]
    words = [set(text.split()) for text in TRAINING]
    pairs = [{" ".join(pair) for pair in pairwise(text.split())} for text in TRAINING]
    for name, number in NAMES.items():
        ratio = vectors.word_weights[number] / plain.word_weights[number]
        assert float(ratio) == pytest.approx(ratio_by_hand(words, labels, name), abs=1e-6)
    for name in set().union(*pairs):
        text = padded([name])
        number = int(vectors.features(text.values, text.mask)[1][0, 0])
        ratio = vectors.pair_weights[number] / plain.pair_weights[number]
        assert float(ratio) == pytest.approx(ratio_by_hand(pairs, labels, name), abs=1e-6)


def test_several_labels_of_a_text_count_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged after every batch, or once at the end: the counts are the same."""
    features = torch.tensor([[1, 2], [2, 2], [3, 1]])
    labels = Padded.of([[0, 2], [1], [2]])
    ratios = []
    for limit in (1, 10**6):
        monkeypatch.setattr(frequencies, "MERGED_AT", limit)
        counts = FeatureCounts(4)
        for row in range(3):
            counts.add(features[row : row + 1], labels.pick(torch.tensor([row])))
        ratios.append(counts.label_ratio())
    assert torch.equal(*ratios)
    with_2 = (2 + 4 * 2 / 3) / (2 + 4) / ((0 + 4 * 1 / 3) / (1 + 4))  # both texts of label 2 have 1
    assert float(ratios[0][1]) == pytest.approx(math.log(with_2))


def test_a_label_that_all_texts_have_tells_nothing() -> None:
    """Several labels, of which all texts have one; one label alone; one text alone."""
    for labels in ([[0, 1], [0], [0, 1]], [[0], [0], [0]], [[0]]):
        counts = FeatureCounts(4)
        features = torch.tensor([[1, 2], [2, 2], [3, 1]])[: len(labels)]
        counts.add(features, Padded.of(labels))
        ratios = counts.label_ratio()
        assert ratios.isfinite().all()
        assert bool(ratios.any()) == (len(labels[0]) > 1)


def test_standardized_vectors_of_many_batches_are_as_long_as_those_of_all_texts() -> None:
    """The batches are of one length each, and not all of their texts are measured."""
    torch.manual_seed(0)
    words = WordEmbedding(vocabulary=50, size=8, vectors=(torch.arange(40), torch.randn(40, 8)))
    encoder = BagEncoder(
        embedding=words, ngrams=NgramVectors(vocabulary=50, size=2), standardize=True
    )
    texts = [torch.randint(4, 50, (64, length)) for length in range(1, 31)]
    batches = [
        Batch({"source": Padded(ids, ids > 0)}, Padded.of([[0], [1]] * 32), torch.arange(64))
        for ids in texts
    ]
    encoder.count(batches)
    means = torch.cat([encoder(batch.inputs["source"]).memory.mean(1) for batch in batches])
    assert float(means.detach().square().sum(1).mean()) == pytest.approx(1, rel=0.15)
    assert not words.matrix()[40:].any()  # words without a pretrained vector


def test_standardized_vectors_begin_as_sentence_embeddings() -> None:
    """Weighed, centred, and the mean vector of a text as long as 1 on average; <unk> is nothing."""
    torch.manual_seed(0)
    vocabulary = 4 + len(NAMES)
    table = torch.randn(vocabulary, 5) + 3
    words = WordEmbedding(
        vocabulary=vocabulary, size=5, vectors=(torch.arange(vocabulary), table.clone())
    )
    encoder = BagEncoder(
        embedding=words, ngrams=NgramVectors(vocabulary=vocabulary, size=2), standardize=True
    )
    texts = padded(TRAINING)
    encoder.count([Batch({"source": texts}, LABELS, torch.arange(5))])
    memory = encoder(texts).memory.detach()
    means = memory.sum(1) / texts.mask.sum(1, keepdim=True)
    assert float(means.square().sum(1).mean()) == pytest.approx(1, rel=1e-5)
    sets = [set(text.split()) for text in TRAINING]
    idf = {name: math.log(6 / (1 + sum(name in text for text in sets))) + 1 for name in NAMES}
    shares = {name: idf[name] * sum(name in text for text in sets) for name in NAMES}
    centre = sum(shares[name] * table[at] for name, at in NAMES.items()) / sum(shares.values())
    expected = torch.stack([idf[name] * (table[at] - centre) for name, at in NAMES.items()])
    learned = torch.stack([words.matrix()[at] for at in NAMES.values()]).detach()
    torch.testing.assert_close(learned / learned.norm(), expected / expected.norm())
    assert not encoder(padded(["strange"])).memory.any()


def test_weights_by_labels_need_a_label_and_standardized_vectors_need_vectors() -> None:
    ngrams = {"ngrams": {"weigh_by": "labels"}}
    keys = {"task": "translation", "model.encoder": {"kind": "bag", **ngrams, "standardize": True}}
    values = "translation/sample_initial"
    overrides = [f"{key}={json.dumps(value)}" for key, value in keys.items()]
    with pytest.raises(RecipeError) as caught:
        sixjars.read_recipe(values, overrides)
    assert "weigh_by: labels needs an output that is a label; frequency fits" in str(caught.value)
    assert "standardize: true is for pretrained vectors, but data.source" in str(caught.value)
    bag = "model.encoder={kind: bag, standardize: true, embedding: {frozen: true, size: 256}}"
    with pytest.raises(RecipeError, match=r"take model\.encoder\.embedding\.frozen=false learning"):
        sixjars.read_recipe(
            "document_classification/sample_flat_initial", ["data.source.vectors=wordllama", bag]
        )


def test_epsilon_belongs_to_adam() -> None:
    keys = ["learning.epsilon=1e-4", "learning.optimizer=sgd"]
    with pytest.raises(RecipeError, match=r"belongs to adam and adamw, but .* sgd; take learning"):
        sixjars.read_recipe("translation/sample_initial", keys)
    settings = sixjars.read_recipe("translation/sample_initial", keys[:1]).learning
    optimizer = optimizer_for([torch.nn.Parameter(torch.ones(1))], settings)
    assert optimizer.defaults["eps"] == 1e-4


def hashed_in_python(buckets: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    vectors = NgramVectors(vocabulary=8, size=1, buckets=buckets)
    ids = torch.tensor(pairs)
    return [int(row[0]) for row in vectors.features(ids, torch.ones_like(ids, dtype=torch.bool))[1]]


def test_the_hash_is_exact_where_numbers_are_floats() -> None:
    """Of the largest ids that are allowed, in 64-bit floats as JavaScript has them."""
    pairs = [(2**32 - 1, 2**32 - 2), (4, 5), (123_456_789, 987_654_321)]
    for buckets in (1, 7, 2**18):
        floats = [1 + (float(a) * FACTORS[0] + float(b) * FACTORS[1]) % buckets for a, b in pairs]
        assert hashed_in_python(buckets, pairs) == floats


def test_constants_of_the_page_are_those_of_python() -> None:
    script = SCRIPT.joinpath("ngrams.js").read_text("utf-8")
    scale = re.search(r"EVIDENCE_SCALE = ([\d.]+)", script)
    factors = re.search(r"PAIR_FACTORS = \[(\d+), (\d+)\]", script)
    assert scale
    assert factors
    assert (float(scale[1]), tuple(map(int, factors.groups()))) == (SCALE, FACTORS)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_the_hash_of_the_page_is_that_of_python(chromium: Browser, tmp_path: Path) -> None:
    script = "\n".join(
        SCRIPT.joinpath(name).read_text("utf-8") for name in ("tensors.js", "ngrams.js")
    )
    (tmp_path / "page.html").write_text(
        f'<meta charset="utf-8"><script>{script}</script>', encoding="utf-8"
    )
    chromium.open(tmp_path / "page.html")
    pairs = [(4, 5), (5, 4), (3, 9), (9, 3), (2**32 - 1, 2**32 - 2), (123_456, 654_321)]
    for buckets in (7, 2**18):
        asked = f"{json.dumps(pairs)}.map(([a, b]) => NgramVectors.prototype.pair.call({{buckets: {buckets}}}, a, b))"
        assert chromium.ask(asked) == hashed_in_python(buckets, pairs)


def learned(bridge: Bridge, *, pairs: bool) -> float:
    """The accuracy on texts whose label hangs on two neighbours: neither of both decides alone."""
    torch.manual_seed(0)
    vectors = NgramVectors(vocabulary=20, size=4, buckets=5000, dropout=0.2)
    encoder = BagEncoder(embedding=WordEmbedding(vocabulary=20, size=4), ngrams=vectors)
    network = Network(encoder, LabelDecoder(bridge=bridge, classes=2, size=4))
    random = np.random.default_rng(0)
    rows, labels = [], []
    for denial, praise in list(product((0, 1), (0, 1))) * 125:
        before, after = (
            random.integers(8, 12, size=random.integers(0, 4)).tolist() for _ in range(2)
        )
        rows.append([*before, 4 + denial, 6 + praise, *after])  # 'not' or 'so', 'good' or 'bad'
        labels.append([int(denial != praise)])
    inputs, target = (
        [{"source": Padded.of(rows[part])} for part in (slice(400), slice(400, None))],
        Padded.of(labels),
    )
    encoder.count([Batch(inputs[0], target.pick(torch.arange(400)), torch.arange(400))])
    if not pairs:
        vectors.pair_weights.zero_()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(60):
        logits = network(inputs[0], target.pick(torch.arange(400))).logits[:, 0]
        loss = torch.nn.functional.cross_entropy(logits, target.values[:400, 0])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    logits = network.eval()(inputs[1], target.pick(torch.arange(400, 500))).logits[:, 0]
    return float((logits.argmax(1) == target.values[400:, 0]).double().mean())


def test_pairs_decide_what_no_word_does() -> None:
    assert learned(InitialState(summary_size=4, state_size=4, start="copy"), pairs=True) > 0.95
    assert learned(InitialState(summary_size=4, state_size=4, start="copy"), pairs=False) < 0.7
    joined = AttentionPooling(
        source_size=4, summary_size=4, state_size=4, size=4, join_summary=True
    )
    assert learned(joined, pairs=True) > 0.95


Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """A recipe for texts of a file, with a bag."""

    def write(name: str, texts: Sequence[str]) -> Path:
        rows = "".join(f"{text}\t{('good', 'bad')[at % 2]}\n" for at, text in enumerate(texts))
        (tmp_path / f"{name}.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
        values: dict[str, Any] = {
            "task": "document_classification",
            "data": {
                "train": str(tmp_path / f"{name}.tsv"),
                "valid": 0.2,
                "source": {"column": "text", "segments": "none", "tokens": "words"},
                "label": {"column": "label"},
            },
            "model": {
                "encoder": {
                    "kind": "bag",
                    "embedding": {"size": 4},
                    "ngrams": {"size": 2, "buckets": 64},
                },
                "bridge": {"kind": "pooling", "size": 4, "join_summary": True},
                "decoder": {"kind": "label", "size": 4},
            },
            "learning": {"steps": 20, "rate": 0.01, "batch_examples": 8},
        }
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        return tmp_path / f"{name}.yaml"

    return write


def test_the_words_that_decided_are_listed(call: Call, written: Write, tmp_path: Path) -> None:
    """Attention may be on any word, for evidence of words and pairs decides; what decided shows without the word."""
    texts = [f"day{at} is a {kind} day" for at in range(15) for kind in ("fine", "grim")]
    run = sixjars.train(
        written("days", texts), ["learning.steps=200"], out=tmp_path / "run", device="cpu"
    ).folder
    text = "such a grim day"
    said = call("inspect", run, text)
    [line] = [line for line in said.out.splitlines() if line.startswith("It hangs on ")]
    name, fall = re.findall(r"(\S+) (\d\.\d\d)", line)[0]
    predictor = sixjars.load(run, device="cpu")
    whole, without = predictor.predict([text, "such a unheard day"])
    assert line.startswith("It hangs on (log P falls by so much without the word): ")
    assert (name, whole.text) == ("grim", "bad")
    assert float(fall) == pytest.approx(
        whole.log_probability - log_of(without, "bad"), rel=0.2
    )  # attention moves
    drawn = call("inspect", run, text, "--out", tmp_path / "page.html")
    assert (
        "note: the weights are attention to words; the output hangs on evidence of words and pairs"
        in drawn.err
    )
    assert "It hangs on" not in call("inspect", run, text, "--view", "json").out


def log_of(prediction: sixjars.Prediction, label: str) -> float:
    """The log probability of one of two labels."""
    is_it = prediction.text == label
    return (
        prediction.log_probability
        if is_it
        else float(np.log1p(-np.exp(prediction.log_probability)))
    )


def test_a_vocabulary_grows_and_every_pair_keeps_its_row(written: Write, tmp_path: Path) -> None:
    old_texts = [f"day{at} is a {kind} day" for at in range(15) for kind in ("fine", "grim")]
    old = sixjars.train(written("old", old_texts), out=tmp_path / "before").folder
    new_texts = [f"day{at} is a {kind} zebra" for at in range(15) for kind in ("fine", "grim")]
    recipe = written("new", new_texts)
    new = sixjars.train(
        recipe, ["learning.rate=1e-12", "learning.steps=1"], out=tmp_path / "after", from_run=old
    )
    before, after = (load_tensors(folder / "model.safetensors")[0] for folder in (old, new.folder))
    words = "encoder.ngrams.words.weight"
    assert len(after[words]) == len(before[words]) + 1
    for name in (words, "encoder.ngrams.pairs.weight"):
        torch.testing.assert_close(after[name][: len(before[name])], before[name])
    had, has = before["encoder.ngrams.pair_weights"], after["encoder.ngrams.pair_weights"]
    assert torch.equal(has[had != 0], had[had != 0])
    assert (has != 0).sum() > (had != 0).sum()  # pairs with the zebra
    assert after["encoder.ngrams.word_weights"][-1] > 0
    answers = [
        sixjars.load(run, device="cpu").predict(["a grim day"])[0].log_probability
        for run in (old, new.folder)
    ]
    assert answers[1] == pytest.approx(answers[0], abs=1e-5)


def test_runs_without_the_newer_keys_load_as_before(tmp_path: Path) -> None:
    """Of the encoder `pair` and of the bridge `pooling`: their weights have the names that they had."""
    small = [
        "model.encoder.sentence.size=4",
        "model.decoder.size=4",
        "learning.steps=2",
        "data.sample.size=40",
    ]
    settings = [*small, "expect={}", "model.bridge={kind: pooling, size: 4}"]
    run = sixjars.train("sentence_pair/sample_attention", settings, out=tmp_path / "run").folder
    recipe = yaml.safe_load((run / "recipe.yaml").read_text("utf-8"))
    assert recipe["model"]["encoder"].pop("compare") == "summaries"
    assert recipe["model"]["bridge"].pop("join_summary") is False
    asked = {"sentence1": "some dogs are running", "sentence2": "no dogs are moving"}
    wanted = sixjars.load(run, device="cpu").predict([asked])[0]
    (run / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    assert sixjars.load(run, device="cpu").predict([asked])[0] == wanted
    sentence = TextEncoder(embedding=WordEmbedding(vocabulary=9, size=2), size=2)
    assert all(name.startswith("sentence.") for name in PairEncoder(sentence=sentence).state_dict())
    bridge = AttentionPooling(source_size=2, state_size=2, size=2)
    assert {name.split(".")[0] for name in bridge.state_dict()} == {"key", "query", "first"}
