"""Words that tell something, and whether another text has them in some form."""

from __future__ import annotations

import pytest

from ragstone.language.measurements import find_quantities
from ragstone.language.negation import changes_extent, denies_more, drops_hedge, has_denial_conflict
from ragstone.language.vocabulary import Vocabulary, content_words, is_measured, read_vocabulary

SOURCE = (
    "The European Space Agency bought twelve e-mail servers in Germany. The engineers repaired the broken pumps. "
    "C++ and max_wal_size are read at start."
)


def words(text: str) -> list[str]:
    return [word.folded for word in content_words(text)]


def names(text: str) -> list[str]:
    return [word.text for word in content_words(text) if word.is_name]


def test_grammar_figures_and_dates_tell_nothing_by_themselves() -> None:
    assert words("The pump was stopped on 3 May 2024 after 80 seconds.") == ["pump", "stopped"]
    assert words("It had 12 boats.") == ["boats"]


def test_names_are_known_by_their_capitals_but_not_where_all_is_capitalised() -> None:
    assert names("The harbour of Kestrel is run by Maria Holt.") == ["Kestrel", "Maria", "Holt"]
    assert names("Maria Holt runs it.") == ["Maria", "Holt"]
    assert names("Boats are sold here.") == []
    assert names("How To Sell Old Boats In A Small Town") == []
    assert "max_wal_size" in names("Set max_wal_size first.")


@pytest.mark.parametrize("path", ["/etc/ssh/sshd_config", "~/.ssh/sshd_config", "../ssh/sshd_config"])
def test_a_path_names_its_file_and_none_of_its_folders(path: str) -> None:
    known = Vocabulary(f"The daemon reads {path} first.")
    assert all(map(known.has, content_words(f"{path} sshd_config")))
    assert not any(map(known.has, content_words("ssh etc config")))
    assert all(map(known.has, content_words("read write"))) is False
    assert all(map(Vocabulary("It allows read/write access.").has, content_words("read write")))


def test_a_word_and_its_verb_may_begin_with_a_name() -> None:
    (first, *_) = content_words("Kestrel was started.")
    assert (first.is_name, first.may_be_name) == (False, True)
    (first, *_) = content_words("Water.")
    assert first.may_be_name is False


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("repairing", True),
        ("The pump", True),
        ("ESA", True),
        ("German", True),
        ("email", True),
        ("max_wal_size", True),
        ("France", False),
        ("It is in France", False),
        ("submarine", False),
        ("shipyard-based", False),
    ],
)
def test_a_text_has_a_word_in_whatever_form(text: str, found: bool) -> None:
    vocabulary = read_vocabulary(SOURCE)
    assert all(vocabulary.has(word) for word in content_words(f"we saw {text}")[-1:]) is found


def test_a_word_that_means_the_same_counts_for_a_plain_word() -> None:
    vocabulary = Vocabulary("She purchased the boat.")
    (bought,) = [word for word in content_words("He bought it") if word.folded == "bought"]
    assert vocabulary.has(bought)


def test_only_units_of_measure_are_measured() -> None:
    (litres,), (boats,) = find_quantities("80 litres"), find_quantities("12 boats")
    assert (is_measured(litres), is_measured(boats)) == (True, False)


def test_how_much_is_said_may_not_grow() -> None:
    assert changes_extent("All boats are blue.", "Some boats are blue.")
    assert changes_extent("Only boats are blue.", "Boats are blue.")
    assert changes_extent("Some boats are blue.", "All boats are blue.")
    assert not changes_extent("All boats are blue.", "All boats are blue.")


def test_what_may_be_so_is_not_so() -> None:
    assert drops_hedge("The pump stops at 80 degrees.", "The pump may stop at 80 degrees.")
    assert not drops_hedge("The pump may stop at 80 degrees.", "The pump may stop at 80 degrees.")
    assert not drops_hedge("The pump stops at 80 degrees.", "The pump stops at 80 degrees.")


def test_a_denial_that_the_source_lacks_is_found() -> None:
    assert denies_more("The pump does not stop.", "The pump stops.")
    assert not denies_more("The pump stops.", "The pump does not stop.")


def test_either_of_two_is_no_fact_but_both_may_be_named() -> None:
    assert drops_hedge("Matt was in the first group.", "Matt was either in the first group or joined it later.")
    assert not drops_hedge("Matt was in the group or joined it.", "Matt was either in the group or joined it later.")


def test_a_term_in_quotes_denies_nothing() -> None:
    assert not has_denial_conflict('"Login no" breaks it.', "Login breaks it.")
    assert not has_denial_conflict("It is set to without-password.", "It is set to password.")
