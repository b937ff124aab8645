from __future__ import annotations

from pathlib import Path

import pytest

from ragstone.core.errors import SettingsError
from ragstone.query.transform.synonyms import MOST_PER_TERM, Dictionary, read_dictionary, synonyms

ENTRIES = Dictionary(
    {"PTO": ["paid time off", "vacation"], "time off": ["leave"], "café": ["coffee house"], "car": ["car"]}
)


@pytest.mark.req("R-QRY-10", "R-TST-24", "R-FUT-01")
def test_terms_get_the_names_the_dictionary_gives_them() -> None:
    assert synonyms("pto policy", [ENTRIES]).words == ("paid time off", "vacation")


def test_the_longest_term_wins() -> None:
    both = Dictionary({"time": ["clock"], "time off": ["leave"]})
    assert synonyms("my time off", [both]).words == ("leave",)


def test_accents_and_case_do_not_matter() -> None:
    assert synonyms("Which CAFÉ?", [ENTRIES]).words == ("coffee house",)


def test_a_word_of_the_query_is_not_its_own_synonym() -> None:
    assert synonyms("red car", [ENTRIES]).words == ()


def test_each_term_adds_a_few_names_only() -> None:
    many = Dictionary({"a1": [f"name{n}" for n in range(9)]})
    assert len(synonyms("a1", [many]).words) == MOST_PER_TERM


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("terms.yaml", "pto: [paid time off, vacation]\n"),
        ("terms.yml", "PTO:\n- paid  time off\n- vacation\n"),
        ("terms.json", '\ufeff{"Pto": ["paid time off", "vacation"]}'),
    ],
)
def test_a_dictionary_is_yaml_or_json(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_dictionary(tmp_path / name).others("pto") == ("paid time off", "vacation")


def test_one_other_name_needs_no_list(tmp_path: Path) -> None:
    (tmp_path / "terms.yaml").write_text("car: automobile")
    assert read_dictionary(tmp_path / "terms.yaml").others("car") == ("automobile",)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("- a list", "is not a mapping"),
        ("a: [b", "cannot be understood"),
        ("a: {b: c}", "what 'a' is called is not a list of words"),
        ("a: [1]", "what 'a' is called is not a list of words"),
        ("a: ['']", "what 'a' is called is not a list of words"),
        ("no: [negative]", "the term False is not one to 4 words"),
        ("one two three four five: [six]", "is not one to 4 words"),
    ],
)
def test_a_broken_dictionary_is_named_with_what_is_wrong(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "terms.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=what) as caught:
        read_dictionary(path)
    assert "retrieval.dictionary" in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_a_dictionary_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_dictionary(tmp_path / "none.yaml")


def test_a_dictionary_of_another_encoding_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "terms.yaml").write_bytes(b"caf\xe9: [x]")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        read_dictionary(tmp_path / "terms.yaml")


def test_json_nested_without_end_is_an_error_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "terms.json").write_text("[" * 100_000)
    with pytest.raises(SettingsError, match="cannot be understood"):
        read_dictionary(tmp_path / "terms.json")
