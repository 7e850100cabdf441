"""From a recipe's text to a checked recipe: every fault is told, all at once, each in one sentence."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
from sixjars.errors import DataError, RecipeError
from sixjars.recipe.files import find, overridden, packaged, read_text, values_of
from sixjars.runs.recipes import read_recipe, recipe_of

FILES: dict[str, Any] = {"train": "a.tsv", "source": {"column": "en"}, "target": {"column": "de"}}


def faults(values: dict[str, Any]) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        recipe_of(values, "test")
    return list(caught.value.faults)


def one_fault(values: dict[str, Any]) -> str:
    (found,) = faults(values)
    return found


def translation(**sections: Any) -> dict[str, Any]:
    return {"task": "translation", "data": FILES, **sections}


def test_six_faults_in_five_sections() -> None:
    values = {
        "task": "translaton",
        "data": {**FILES, "on_bad_row": "skipp"},
        "model": {"encoder": {"sise": 3}, "bridge": {"kind": "atention"}},
        "learning": {"rate": -1},
        "evaluation": {"metrics": ["blue"]},
    }
    found = faults(values)
    assert len(found) == 6
    assert found[0].startswith(
        "task 'translaton' is unknown. Did you mean 'translation'? Known: conversation, "
    )
    assert (
        found[1]
        == "data.on_bad_row: should be 'error' or 'skip', but is 'skipp'. Did you mean 'skip'?"
    )
    assert found[2].startswith("model.encoder: key 'sise' is unknown. Did you mean 'size'? Known: ")
    assert found[3].startswith(
        "model.bridge: kind 'atention' is unknown. Did you mean 'attention'? Known: "
    )
    assert found[4] == "learning.rate: should be greater than 0, but is -1."
    assert found[5].startswith(
        "evaluation.metrics: metric 'blue' is unknown. Did you mean 'bleu'? Known: "
    )


def test_faults_of_several_keys_are_not_hidden_by_others() -> None:
    """Each key alone is looked at first; that one is wrong must not hide what two of them do together."""
    learning = {"batch_tokens": 5, "batch_examples": 6, "momentum": 0.5, "rate": "fast"}
    data = {"train": "a.tsv", "sample": {}, "valid": 7, "folder": 5, "source": {}, "target": {}}
    assert faults({"task": "translation", "data": data, "learning": learning}) == [
        "data.folder: should be a valid string, but is 5.",
        "data: needs either 'train' (a file) or 'sample' (a synthetic corpus), not both.",
        "data: 'valid' as a fraction must lie between 0 and 1, but is 7.0.",
        "data: 'source' and 'target' are both column 'text'; name two columns.",
        "learning.rate: should be a valid number, but is 'fast'.",
        "learning: give 'batch_tokens' or 'batch_examples', not both.",
        "learning: 'momentum' belongs to sgd, but the optimizer is adam.",
    ]


def test_a_target_that_is_left_out_is_checked_all_the_same() -> None:
    for target in ({}, {"target": None}):
        values = {
            "task": "translation",
            "data": {"train": "a.tsv", "source": {"column": "text"}, **target},
        }
        assert (
            one_fault(values)
            == "data: 'source' and 'target' are both column 'text'; name two columns."
        )


@pytest.mark.parametrize(
    "data", [{}, {"valid": 0.2, "test": "b.tsv"}, {"split": {"column": "part", "test": "dev"}}]
)
def test_what_is_written_down_is_read_again(data: dict[str, Any]) -> None:
    """A run keeps its recipe with every default filled in."""
    found = recipe_of(translation(data={**FILES, **data}), "test")
    assert recipe_of(values_of(found.to_yaml(), "test"), "test") == found


def test_a_wrong_key_is_told_once() -> None:
    assert one_fault({"task": "language_model", "data": {"train": [1]}}) == (
        "data.train.0: must be the name of a file, or {file: NAME, weight: NUMBER}, but is 1."
    )
    assert one_fault(translation(learning={"optimizer": "sgdd", "momentum": 0.5})) == (
        "learning.optimizer: should be 'adam', 'adamw', 'sgd' or 'adadelta', but is 'sgdd'. Did you mean 'sgd'?"
    )
    search = {"kind": "beam", "width": "x", "nbest": 9}
    assert one_fault(translation(evaluation={"search": search})) == (
        "evaluation.search.width: should be a valid integer, but is 'x'."
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"data": FILES}, "key 'task' is missing. Known: conversation, "),
        ({"task": ["x"], "data": FILES}, "task \"['x']\" is unknown."),
        (
            translation(lerning={}),
            "key 'lerning' is unknown. Did you mean 'learning'? Known: data, ",
        ),
        (
            translation(data={"source": {}}),
            "data: needs either 'train' (a file) or 'sample' (a synthetic corpus), not",
        ),
        (
            translation(data={**FILES, "sample": {}}),
            "data: needs either 'train' (a file) or 'sample' (a synthetic ",
        ),
        ({"task": "translation", "data": 5}, "data: must be a section of keys, but is 5."),
        (translation(model=5), "model: must be a section of keys, but is 5."),
        (translation(model={"bridge": 5}), "model.bridge: must be a section of keys, but is 5."),
        (
            translation(model={"brige": {}}),
            "model: key 'brige' is unknown. Did you mean 'bridge'? Known: bridge, ",
        ),
        (
            translation(model={"encoder": {"kind": ["text"]}}),
            "model.encoder.kind: must be a word, but is ['text'].",
        ),
        (
            translation(model={"bridge": {"score": {}}}),
            "model.bridge.score: should be 'additive', 'dot' or 'general', but is {}.",
        ),
        (
            translation(model={"encoder": {"layers": 0}}),
            "model.encoder.layers: should be greater than or equal to 1",
        ),
        (translation(learning={"steps": 1.5}), "learning.steps: should be a valid integer"),
        (
            translation(learning={"steps": True}),
            "learning.steps: should be a valid integer, but is True.",
        ),
        (
            translation(learning={"rate": True}),
            "learning.rate: should be a valid number, but is True.",
        ),
        (
            translation(learning={"rate": float("nan")}),
            "learning.rate: should be a finite number, but is nan.",
        ),
        (
            translation(learning={"seed": 2**63}),
            "learning.seed: should be less than 9223372036854775808, but is ",
        ),
        (
            translation(learning={"precision": 16}),
            "learning.precision: should be '32', 'bf16', 'fp16' or 'auto', but is '16'. Did",
        ),
        (translation(learning={"metric": "los"}), "learning.metric: metric 'los' is unknown."),
        (
            translation(learning={"metric": 5}),
            "learning.metric: should be a valid string, but is 5.",
        ),
        (translation(learning={1: 2}), "learning.1: Keys should be strings, but is 1."),
        (
            translation(evaluation={"metrics": "bleu"}),
            "evaluation.metrics: should be a list, but is 'bleu'.",
        ),
        (
            translation(evaluation={"metrics": [5]}),
            "evaluation.metrics.0: should be a valid string, but is 5.",
        ),
        (
            translation(evaluation={"search": 5}),
            "evaluation.search: should be a section of keys, but is 5.",
        ),
        (
            translation(expect={"bleu": "much"}),
            "expect.bleu: should be a valid number, but is 'much'.",
        ),
        (
            translation(expect={"bleu": float("inf")}),
            "expect.bleu: should be a finite number, but is inf.",
        ),
        (translation(expect={"blue": 5}), "expect: metric 'blue' is unknown. Did you mean 'bleu'?"),
        (translation(expect=[5]), "expect: must be a section of keys, but is [5]."),
        (
            {"task": "translation", "data": {"train": "a"}},
            "data: key 'source' is missing; translation needs it.",
        ),
        (
            {"task": "translation", "data": {"sample": {}}},
            "data: key 'source' is missing; translation needs it.",
        ),
        (
            {"task": "language_model", "data": {"sample": {}, "source": {}}},
            "data: key 'source' has no place here; language_model reads no input and outputs a target.",
        ),
        (
            translation(model={"encoder": {"kind": "none"}, "bridge": {"kind": "initial"}}),
            "model.encoder: kind 'none' does not fit; translation reads source and outputs a target. Use text.",
        ),
        (
            translation(model={"decoder": {"kind": "label"}}),
            "model.decoder: kind 'label' does not fit translation. Use",
        ),
        (
            translation(data={**FILES, "target": {"kind": "points"}}),
            "data.target: kind 'points' does not fit translation. Use text.",
        ),
        (
            translation(data={**FILES, "source": {"kind": "points"}}),
            "model.encoder.embedding: needs vocabulary of data.source, but a field of kind points has none.",
        ),
        (
            translation(data={**FILES, "boxes": "b"}),
            "data: key 'boxes' has no place here; translation reads source and",
        ),
        (
            translation(loss={"guide": 1}),
            "loss.guide: needs true alignments, but data.alignment names no column; name",
        ),
        (
            translation(
                data={**FILES, "alignment": "a"},
                loss={"guide": 1},
                model={"bridge": {"kind": "initial"}},
            ),
            "loss.guide: needs a bridge of kind attention, location or two_level, but it is initial.",
        ),
        (
            translation(evaluation={"metrics": ["alignment_error_rate"]}),
            "evaluation.metrics: alignment_error_rate needs true alignments, but data.alignment names no column.",
        ),
        (
            {
                "task": "translation",
                "data": {"sample": {}, "source": {}},
                "model": {"bridge": {"kind": "every_step"}},
                "learning": {"metric": "alignment_error_rate"},
            },
            "learning.metric: alignment_error_rate needs a bridge of kind attention, location or two_level, but it is "
            "every_step.",
        ),
    ],
)
def test_faults(values: dict[str, Any], message: str) -> None:
    assert one_fault(values).startswith(message)


def test_splits_told_apart_by_a_column_are_all_in_one_file() -> None:
    told = "data: 'split' finds all splits in the training file; name no 'valid', 'test' or 'sample' beside it."
    for beside in ({"valid": "b.tsv"}, {"valid": 0.2}, {"test": "c.tsv"}, {"test": 0.1}):
        assert one_fault(translation(data={**FILES, "split": {}, **beside})) == told
    sampled = {**FILES, "train": None, "sample": {}, "split": {"column": "part"}}
    assert one_fault(translation(data=sampled)) == told
    assert one_fault(translation(data={**FILES, "split": {"vlaid": "dev"}})).startswith(
        "data.split: key 'vlaid' is unknown. Did you mean 'valid'? Known: column, test, train, valid."
    )
    assert one_fault(translation(data={**FILES, "split": "part"})) == (
        "data.split: should be a section of keys, but is 'part'."
    )


def test_the_splits_of_a_column_differ() -> None:
    split = {"train": "a", "valid": "a"}
    assert one_fault(translation(data={**FILES, "split": split})) == (
        "data.split: the splits must have different values, but have ['a', 'a']."
    )


def test_a_synthetic_corpus_without_alignments() -> None:
    values = {
        "task": "language_model",
        "data": {"sample": {}},
        "expect": {"alignment_error_rate": 1},
    }
    assert faults(values) == [
        "expect: alignment_error_rate needs true alignments, but the synthetic corpus of language_model has none.",
        "expect: alignment_error_rate needs a bridge of kind attention, location or two_level, but it is initial.",
    ]


def test_a_long_value_is_quoted_in_short() -> None:
    found = one_fault(translation(learning={"steps": "9" * 100_000}))
    assert len(found) < 200
    deep: list[Any] = []
    for _ in range(30):
        deep = [deep, deep]  # 2^30 brackets, if they were written out
    assert len(one_fault(translation(learning={"steps": deep}))) < 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a recipe is a set of keys (task, data, model, …)."),
        ("[1, 2]", "a recipe is a set of keys (task, data, model, …)."),
        ("just words", "a recipe is a set of keys (task, data, model, …)."),
        ("a: [1", "line 2: not YAML: did not find expected ',' or ']'."),
        ("a: 1\nb: 2\na: 3", "line 3: not YAML: key 'a' stands twice."),
        ("a:\n  b: 1\n  b: 1", "line 3: not YAML: key 'b' stands twice."),
        ("? [a, b]\n: 1", "line 1: not YAML: a key must be a word."),
        ("a: \x07", "not YAML: "),
        ("a: 1\n---\nb: 2", "line 3: not YAML: a recipe is one document."),
        (f"a: {'9' * 5000}", "line 1: not YAML: a number has more than 25 digits."),
        ("a: " + "[" * 5000, "line 1: not YAML: sections are nested more than 20 deep."),
        (
            "a: !!python/object/apply:os.system ['true']",
            "line 1: not YAML: the tag 'tag:yaml.org,2002:python/obj",
        ),
        (
            "a: !!python/name:os.system",
            "line 1: not YAML: the tag 'tag:yaml.org,2002:python/name:os.system' has no",
        ),
        (
            'a: !!int ""',
            "line 1: not YAML: the tag 'tag:yaml.org,2002:int' has no place in a recipe.",
        ),
        (
            'a: !!float "_"',
            "line 1: not YAML: the tag 'tag:yaml.org,2002:float' has no place in a recipe.",
        ),
        (
            "a: !!bool x",
            "line 1: not YAML: the tag 'tag:yaml.org,2002:bool' has no place in a recipe.",
        ),
        (
            "a: !!timestamp x",
            "line 1: not YAML: the tag 'tag:yaml.org,2002:timestamp' has no place in a recipe.",
        ),
        ("a: !mine 5", "line 1: not YAML: the tag '!mine' has no place in a recipe."),
        ('a: "\\UFFFFFFFF"', "line 1: not YAML: found invalid Unicode character escape code."),
        ("a: *b", "line 1: not YAML: an anchor (&name) or alias (*name) has no place in a recipe."),
        (
            "a: &b 5",
            "line 1: not YAML: an anchor (&name) or alias (*name) has no place in a recipe.",
        ),
    ],
)
def test_text_that_is_no_recipe(text: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        values_of(text, "here")
    assert str(caught.value).startswith(f"here: {message}")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"task: \xff")
    with pytest.raises(RecipeError) as caught:
        read_text(path)
    assert str(caught.value) == f"{path}: byte 6 is not UTF-8 text."
    with pytest.raises(DataError, match=r"cannot be read: Is a directory\.$"):
        read_text(tmp_path)


def test_finding(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("")
    assert find(str(tmp_path / "mine.yaml")) == tmp_path / "mine.yaml"
    assert find("translation/sample_attention") == packaged()["translation/sample_attention"]
    for name, message in {
        str(tmp_path / "mein.yaml"): f"recipe file {tmp_path / 'mein.yaml'} does not exist. "
        f"Did you mean '{tmp_path / 'mine.yaml'}'?",
        str(
            tmp_path / "none" / "a.yaml"
        ): f"recipe file {tmp_path / 'none' / 'a.yaml'} does not exist.",
        str(tmp_path): f"{tmp_path} is a folder, not a recipe file.",
        "translation/sampel_attention": "recipe 'translation/sampel_attention' is unknown. Did you mean "
        "'translation/sample_attention'? A recipe is a .yaml file or a name that `sixjars tasks` lists.",
        "": "recipe '' is unknown. A recipe is a .yaml file or a name that `sixjars tasks` lists.",
    }.items():
        with pytest.raises(DataError) as caught:
            find(name)
        assert str(caught.value) == message


@pytest.mark.parametrize("given", ["learning.epochs=2", {"learning.epochs": 2}])
@pytest.mark.parametrize("use", [sixjars.train, sixjars.explain])
def test_overrides_that_are_no_list(use: Any, given: Any) -> None:
    with pytest.raises(RecipeError) as caught:
        use("translation/sample_initial", given)
    assert (
        str(caught.value)
        == f'overrides: must be a list such as ["learning.epochs=2"], but is {given!r}.'
    )


def test_overrides() -> None:
    values = {"learning": {"rate": 1.0}, "model": {"encoder": {"size": 3}}}
    changes = [
        "learning.rate=5e-4",
        "model.encoder.layers=2",
        "evaluation.metrics=[bleu, ter]",
        "task=x=y",
    ]
    assert overridden(values, changes) == {
        "learning": {"rate": 0.0005},
        "model": {"encoder": {"size": 3, "layers": 2}},
        "evaluation": {"metrics": ["bleu", "ter"]},
        "task": "x=y",
    }
    assert values == {"learning": {"rate": 1.0}, "model": {"encoder": {"size": 3}}}
    with pytest.raises(RecipeError) as caught:
        overridden(values, ["learning", "=5", "a=[1", "b=!!int x", f"c={'[' * 5000}"])
    assert caught.value.faults[:4] == (
        "override 'learning' must look like KEY=VALUE, for example learning.rate=5e-4.",
        "override '=5' must look like KEY=VALUE, for example learning.rate=5e-4.",
        "override 'a=[1' has a value that is not YAML.",
        "override 'b=!!int x' has a value that is not YAML.",
    )
    assert len(caught.value.faults) == 5


@pytest.mark.parametrize("digits", [60, 310, 100_000])
def test_a_number_that_no_computer_needs(digits: int) -> None:
    with pytest.raises(RecipeError) as caught:
        read_recipe("translation/sample_initial", [f"expect.bleu={'9' * digits}"])
    assert str(caught.value).startswith("the command line: override 'expect.bleu=9999")
    assert str(caught.value).endswith("999' has a value that is not YAML.")
    assert len(str(caught.value)) < 300
    from_python = one_fault(translation(expect={"bleu": 10**310}))  # more than a float can be
    assert from_python.startswith("expect.bleu: should be a valid number, but is 1000")


def test_a_number_with_underscores_is_a_word() -> None:
    name, change = "image_question_answering/sample_plain", "data.question.column=1_000"
    assert read_recipe(name, [change]).data.fields["question"].column == "1_000"
    with pytest.raises(RecipeError, match="key 'question' has no place here"):
        read_recipe("translation/sample_initial", [change])


def test_a_resolved_recipe_reads_back_as_itself() -> None:
    recipe = read_recipe(
        "translation/sample_attention", ["learning.rate=5e-4", "learning.precision=32"]
    )
    assert recipe.learning.rate == 0.0005
    again = recipe_of(yaml.safe_load(recipe.to_yaml()), "again")
    assert again == recipe
    assert again.to_yaml() == recipe.to_yaml()


def test_what_only_two_jars_together_show() -> None:
    values = {
        "task": "translation",
        "data": {"sample": {}, "source": {}, "target": {}},
        "model": {"bridge": {"kind": "initial"}, "encoder": {"embedding": {"frozen": True}}},
        "evaluation": {"search": {"kind": "beam", "coverage_penalty": 0.2}},
    }
    with pytest.raises(RecipeError) as caught:
        recipe_of(values, "a test")
    assert set(caught.value.faults) == {
        "evaluation.search.coverage_penalty: needs a bridge of kind attention, location or two_level, "
        "but it is initial.",
        "model.encoder.embedding.frozen: true keeps pretrained vectors as they are, "
        "but data.source.vectors names none.",
    }


def test_values_are_plain() -> None:
    """What people write in YAML, `5e-4` included; dates, octal numbers and the like are words."""
    text = "{a: 5e-4, b: -1.5, c: 1., d: .5, e: 07, f: 1_000, g: 2020-01-02, h: ~, i: yes, j: 'no', k: 0x10, l: [x, 3]}"
    assert values_of(text, "here") == {
        **{
            "a": 0.0005,
            "b": -1.5,
            "c": 1.0,
            "d": 0.5,
            "e": "07",
            "f": "1_000",
            "g": "2020-01-02",
            "h": None,
        },
        **{"i": True, "j": "no", "k": "0x10", "l": ["x", 3]},
    }


@pytest.mark.timeout(30)
def test_a_recipe_is_small(tmp_path: Path) -> None:
    """A file of megabytes is refused before it is parsed, and one of a megabyte of brackets at once.

    One that is just small enough, with a fault in every line, is read in a second or two, and told in short.
    """
    large = tmp_path / "large.yaml"
    large.write_text("a: 1\n" * 300_000)
    with pytest.raises(RecipeError, match=r"is larger than 65,536 bytes, so it is no recipe\.$"):
        read_text(large)
    with pytest.raises(RecipeError, match="nested more than 20 deep"):
        values_of("[" * 1_000_000, "here")
    large.write_text("".join(f"k{number}: 1\n" for number in range(6_000)))
    with pytest.raises(
        RecipeError, match=r"(?s)^6001 faults in .*\n  - and 5951 more\.$"
    ) as caught:
        read_recipe(str(large))
    assert len(str(caught.value)) < 10_000


def test_names_that_no_file_can_have() -> None:
    for name in ("x" * 5000, "a/" * 3000, "nul\0"):
        with pytest.raises(DataError) as caught:
            find(name)
        assert "is unknown." in str(caught.value)
        assert len(str(caught.value)) < 300
    with pytest.raises(DataError, match="does not exist") as caught:
        find("x" * 5000 + ".yaml")
    assert len(str(caught.value)) < 300


def test_long_values_are_quoted_in_short_everywhere() -> None:
    long = "y" * 100_000
    for values in (
        translation(**{long: 1}),
        translation(learning={long: 1}),
        {**translation(), "task": long},
        translation(evaluation={"metrics": [long]}),
        translation(model={"encoder": {"kind": long}}),
        translation(data={**FILES, long: 5}),
        translation(data={**FILES, "source": {"column": "a", "tokens": long}}),
    ):
        assert all(len(fault) < 1000 for fault in faults(values))
    with pytest.raises(RecipeError) as caught:
        overridden({}, [long])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            translation(learning={"lr": 0.1}),
            "learning: key 'lr' is unknown. Did you mean 'rate'? Known: ",
        ),
        (
            translation(learning={"batch_size": 5}),
            "learning: key 'batch_size' is unknown. Did you mean 'batch_examples'?",
        ),
        (
            translation(model={"encoder": {"hidden_size": 5}}),
            "model.encoder: key 'hidden_size' is unknown. Did you mean 'size'?",
        ),
        (
            {**translation(), "task": "sentiment_analysis"},
            "task 'sentiment_analysis' is unknown. Did you mean 'document_",
        ),
        (
            translation(data={**FILES, "where": {}}),
            "data: key 'where' is unknown. Did you mean 'filter'? Known: ",
        ),
        (
            translation(data={**FILES, "source": {"parts": "lines"}}),
            "data.source: key 'parts' is unknown. Did you mean 'segments'?",
        ),
    ],
)
def test_names_from_elsewhere_are_understood(values: dict[str, Any], message: str) -> None:
    assert faults(values)[0].startswith(message)
