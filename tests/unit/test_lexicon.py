"""The word lists beside the samples: each file is one sample's, its texts become lists."""

from importlib.resources import files

import pytest

from sixjars import samples
from sixjars.samples import articles, dialog, entailment, hindi, transliteration
from sixjars.samples.texts import Lexicon

LEXICONS: dict[str, Lexicon] = {
    module.WORDS.name: module.WORDS for module in vars(samples).values() if hasattr(module, "WORDS")
}


def test_every_file_belongs_to_a_sample() -> None:
    names = [path.name for path in (files("sixjars.samples") / "words").iterdir()]
    assert sorted(names) == sorted(f"{name}.yaml" for name in LEXICONS)


@pytest.mark.parametrize("name", LEXICONS)
def test_lists_are_not_empty_and_have_nothing_twice(name: str) -> None:
    for table in LEXICONS[name].tables.values():
        for key, listed in table.items():
            assert listed
            assert len(set(listed)) == len(listed) or (name, key) == ("transliteration", "codas")
            assert all(entry == " ".join(entry.split()) for entry in listed)


def test_a_line_is_words_a_block_is_lines_and_a_table_is_by_name() -> None:
    assert dialog.WORDS["sizes"] == ("big", "small", "old", "new")
    assert len(dialog.WORDS["numbers"]) == 19  # over two lines of the file
    assert entailment.WORDS["times"] == ("this morning", "in the evening", "at night", "on sunday")
    assert entailment.WORDS.table("riding") == {
        "using a vehicle": ("bicycles", "scooters", "motorbikes")
    }
    assert articles.WORDS.table("endings")["person"] == ("", "n", "r", "s", "l")


def test_words_that_yaml_takes_for_truth_values_stay_words() -> None:
    assert "on" in hindi.WORDS.table("postpositions")
    assert {"y", "n"} <= set(transliteration.WORDS.table("consonants"))


def test_a_file_is_read_when_it_is_first_needed() -> None:
    lexicon = Lexicon("dialog")
    assert "tables" not in vars(lexicon)
    assert lexicon["scary"][0] == "snakes"
    assert vars(lexicon)["tables"] is lexicon.tables


def test_every_adjective_noun_and_object_of_hindi_is_known() -> None:
    words = hindi.WORDS
    things, places = set(words.table("things")), set(words.table("places"))
    assert {noun for nouns in words.table("objects").values() for noun in nouns} <= things
    assert {noun for nouns in words.table("places_of").values() for noun in nouns} | set(
        words["goals"]
    ) == places
    assert {
        adjective for listed in words.table("adjectives_of").values() for adjective in listed
    } == set(words.table("adjectives"))
    assert set(words.table("adjectives_of")) == things | {"people", "animals", "places"}
    assert words.table("times").keys() == words.table("tenses_of").keys()
    assert words.table("postpositions").keys() == words.table("places_of").keys()
    verbs = {
        group: [verb.english for verb in hindi.verbs(group)] for group in ("transitive", "social")
    }
    assert verbs["transitive"] == list(words.table("objects"))
    assert verbs["social"] == list(words.table("persons_take"))
