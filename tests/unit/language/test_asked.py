from __future__ import annotations

import pytest

from ragstone.language.asked import (
    asks_for_default,
    asks_for_named_place,
    counts,
    find_asked_kind,
    find_comparing,
    find_counted,
    holds_kind,
    names_people,
    names_place,
)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How long does the server wait?", "duration"),
        ("After what time is it dropped?", "duration"),
        ("How many pumps are there?", "number"),
        ("What does an annual agreement for the pump cost?", "price"),
        ("How much do visitors pay?", "price"),
        ("How much does the pump weigh?", "number"),
        ("What is the highest amount that was ever paid?", "number"),
        ("Who founded the harbour?", "person"),
        ("Where is the log file kept?", "place"),
        ("Which option turns the fan off?", "setting"),
        ("Which command stops the pump?", "command"),
        ("What is the default of fan_speed?", "default"),
        ("Why is the valve closed?", "reason"),
        ("How do I stop the pump?", "steps"),
        ("What is a valve?", "definition"),
        ("Can the pump run dry?", "yes-no"),
        ("Which option sets the connection timeout?", "setting"),
        ("Which command shows how many clients are connected?", "command"),
        ("How can I see how many rows a table has?", "steps"),
        ("In which file does it leave its process number?", "place"),
        ("What is the key size?", "size"),
        ("Which port does the pump use?", "number"),
        ("Which service runs on port 9095?", "other"),
        ("Which config file in the home directory is read?", "place"),
        ("What does the command FREEZE do?", "definition"),
        ("What does the option --wait mean?", "definition"),
        ("What do I pay if I support a pupil who is older?", "definition"),
        ("What is the default key sequence?", "default"),
        ("What is the default sector size?", "size"),
        ("From what distance can it be heard?", "number"),
        ("Which databases does it support?", "list"),
        ("Which process does it stop?", "other"),
        ("What exit status does timeout return when the command times out?", "number"),
        ("What is the exit status of timeout if the command times out?", "number"),
        ("Which file does the delay come from?", "place"),
        ("How can I reach him?", "contact"),
        ("How do I contact the harbour?", "contact"),
        ("What is the phone number of the harbour?", "contact"),
        ("How do I reach the island?", "steps"),
        ("How do I call the function?", "steps"),
        ("Wie lange wartet der Server?", "other"),
    ],
)
def test_what_a_question_asks_for(question: str, kind: str) -> None:
    assert find_asked_kind(question) == kind


@pytest.mark.parametrize(
    ("kind", "text", "held"),
    [
        ("duration", "The default is five minutes (5min).", True),
        ("price", "The team plan allows 50,000 messages, the free plan 1,000.", False),
        ("price", "Adults pay 6 pounds.", True),
        ("price", "Delivery is free of charge.", True),
        ("price", "Its price is 36.", True),
        ("time", "Version 22.04 ends on 2027-04-01.", True),
        ("duration", "Keys stay in the agent forever.", True),
        ("duration", "Refunds take five working days.", True),
        ("duration", "The server waits for a while.", False),
        ("duration", "The server waits until a checkpoint is forced.", False),
        ("duration", "Number of seconds to keep it (default: 900).", True),
        ("duration", "Seconds are counted from version 3.", False),
        ("duration", "Time to keep it, in seconds\n\nDefault: `90`", True),
        ("duration", "Default: `90`", False),
        ("size", "The largest body (bytes)\n\nDefault: `100000000`", True),
        ("size", "Sector size of the device. Defaults to 512.", True),
        ("size", "It is as large as version 3.", False),
        ("number", "The default is three.", True),
        ("number", "There are a few of them.", False),
        ("number", "It is one of them, and this one too.", False),
        ("number", "It is read once the server has started.", False),
        ("number", "It is read once a day.", True),
        ("number", "It is hashed with SHA-256.", False),
        ("contact", "Write to harbour@example.org.", True),
        ("contact", "The office answers on 020 7946 0911 until noon.", True),
        ("contact", "The office is closed on 12 May.", False),
        ("person", "It was founded by Ian Murdock.", True),
        ("person", "It was founded by a student.", False),
        ("person", "Earl T. Cohen wrote the logic.", True),
        ("setting", "Restore it by pressing F9.", True),
        ("setting", "Set fan_speed to a higher value.", True),
        ("setting", "The fan turns faster then.", False),
        ("other", "Anything at all.", True),
    ],
)
def test_what_a_text_holds(kind: str, text: str, held: bool) -> None:
    assert holds_kind(kind, text) is held  # type: ignore[arg-type]


def test_a_name_of_the_question_is_no_answer_to_it() -> None:
    assert not holds_kind("person", "This is about Pumpo.", "Who founded Pumpo?")


def test_a_figure_of_the_question_is_no_answer_to_it() -> None:
    question = "How many fans has Pumpo 12?"
    assert not holds_kind("number", "Pumpo 12 has fans.", question)
    assert holds_kind("number", "Pumpo 12 has 3 fans.", question)


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        ("How many fans has the pump?", "fan"),
        ("How many of its fans run?", "fan"),
        ("How many does it have?", ""),
        ("How long is it?", ""),
    ],
)
def test_what_is_counted(question: str, counted: str) -> None:
    assert find_counted(question) == counted


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("It has 3 blue fans.", True),
        ("It has three fans.", True),
        ("Its 3 pumps are blue, and so are the fans.", False),
        ("It has fans.", False),
    ],
)
def test_a_number_counts_the_noun_behind_it(text: str, counted: bool) -> None:
    assert counts("fan", text) is counted
    assert not counts("", text)


def test_what_something_costs_may_be_in_any_currency() -> None:
    assert holds_kind("price", "A berth is nine crowns.", "What does a berth cost?")


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Harbour Line Ltd. Version 4.2, in force from 1 March 2026.", False),
        ("See section 3.2 on the crew, open from 10:00 to 15:00.", False),
        ("4.1 The crew is hired by the master.", False),
        ("4.1 The crew is twelve strong.", True),
        ("In 2017 the crew numbered 40.", True),
    ],
)
def test_a_number_that_counts_nothing_is_no_quantity(text: str, held: bool) -> None:
    assert holds_kind("number", text, "How many people does the harbour have?") is held
    assert holds_kind("number", "Version 4.2 is out.", "Which version is out?")


def test_letters_of_a_standard_are_nobody() -> None:
    assert not holds_kind("person", "It is made available under the BSD license.", "Who wrote it?")
    assert holds_kind("person", "It is made by ISC for everyone.", "Who makes it?")


def test_places_on_the_map() -> None:
    assert not names_place("The strength of Pumpo is its size.", "In which city is Pumpo?")
    assert asks_for_named_place("In which city is the plant?")
    assert not asks_for_named_place("In which file is the plant?")
    assert names_place("The plant is in Oslo.")
    assert not names_place("The plant is in use.")


@pytest.mark.parametrize(
    "question", ["Is it on by default?", "How long, if I change nothing?", "Is it on out of the box?"]
)
def test_what_holds_as_long_as_nobody_changes_it(question: str) -> None:
    assert asks_for_default(question)
    assert not asks_for_default("How do I change the speed?")
    assert not asks_for_default("How do I use another speed than the default?")


@pytest.mark.parametrize("column", ["Owner", "Name", "On-call contact", "Approved by", "Team", "Managers"])
def test_columns_of_people(column: str) -> None:
    assert names_people(column)


@pytest.mark.parametrize("column", ["Port", "Number", "Warranty (months)", "Folder", "Order", "Header", "Site"])
def test_columns_of_things(column: str) -> None:
    assert not names_people(column)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("Which is the cheapest pump?", "cheapest"),
        ("Which pump is the most expensive?", "most"),
        ("Do both have the same valve?", "same"),
        ("What is the latest date?", "latest"),
        ("How long does a request for rest last at most?", ""),
        ("Does it need at least two fans?", ""),
    ],
)
def test_the_word_that_compares(question: str, word: str) -> None:
    assert find_comparing(question) == word
