from __future__ import annotations

import pytest

from ragstone.language.questions import decompose, split_question

COMPOUND = {
    "What is a hook? How do cronjobs work?": ("What is a hook", "How do cronjobs work"),
    "how do I install modules and how do I write a command": ("how do I install modules", "how do I write a command"),
    "What is a role, and who can assign it?": ("What is a role", "who can assign it"),
    "opening hours; parking nearby": ("opening hours", "parking nearby"),
    "What is the difference between filters and searches in the API?": ("filters", "searches in the API"),
    "compare hooks with cronjobs": ("hooks", "cronjobs"),
    "Chroma vs. Qdrant": ("Chroma", "Qdrant"),
    "BM25 compared to vector search": ("BM25", "vector search"),
}
SIMPLE = [
    "",
    "how do cronjobs work",
    "salt and pepper",
    "terms and conditions of sale",
    "difference between",
    "What is a hook?",
    "What? Why?",
    "research and development spending",
]


@pytest.mark.req("R-QRY-11")
@pytest.mark.parametrize("query", COMPOUND)
def test_a_compound_question_falls_apart(query: str) -> None:
    assert decompose(query) == COMPOUND[query]


@pytest.mark.parametrize("query", SIMPLE)
def test_one_question_stays_whole(query: str) -> None:
    assert decompose(query) == ()


def test_there_are_at_most_four_parts() -> None:
    assert decompose(" ".join(f"What is number {n}?" for n in range(9))) == tuple(
        f"What is number {n}" for n in range(4)
    )


@pytest.mark.parametrize("piece", ["? ", " and ", ", and ", "; ", " vs ", "difference between a "])
def test_a_huge_query_is_left_alone(piece: str) -> None:
    assert decompose(piece * 2000) == ()


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (("When was Harbour Line founded", "who runs it"), "who runs Harbour Line"),
        (("When does the museum open", "what does it cost"), "what does the museum cost"),
        (("Where is the east slip", "is it open on Sundays"), "is the east slip open on Sundays"),
        (("How do I reset the pump", "what happens when it fails"), "what happens when the pump fails"),
        (("What does the council do", "who are its members"), "who are the council's members"),
        (("When did the Eider enter service", "who built her"), "who built the Eider"),
        (("In which year was the slip built", "who owns it"), "who owns the slip"),
        (("What is the fare to Sula", "how long does the crossing take"), "how long does the crossing take"),
        (("Why does that happen", "who decides it"), "who decides it"),
    ],
)
def test_what_a_word_points_to_is_said(parts: tuple[str, str], whole: str) -> None:
    assert split_question(" and ".join(parts)) == (parts[0], whole)


@pytest.mark.parametrize(
    ("question", "second"),
    [
        ("What is the default of checkpoint_timeout and how do I change it?", "how do I change checkpoint_timeout"),
        ("What is the default of work_mem and what is the maximum?", "what is the maximum (work_mem)"),
        ("What does `git stash` do, and how do I undo it?", "how do I undo git stash"),
        ("What does -r do and what's its long form?", "what's -r's long form"),
        ("Who wrote Flask and when was Django released?", "when was Django released"),
        ("Who looks after Git these days and where does it live?", "where does Git live"),
        ("How long is the timeout on Linux, and what about Windows?", "How long is the timeout on Windows"),
        ("How often does the ferry sail, and what about on Sundays?", "How often does the ferry sail (on Sundays)"),
        ("What is a savepoint? How do I release one?", "How do I release a savepoint"),
        ("Where is the log written and can I turn it off?", "can I turn the log off"),
        ("What is the limit and how do I raise or lower it?", "how do I raise or lower the limit"),
        ("Which port does the server use and in which file is it set?", "in which file is the port of the server set"),
        ("Which command lists branches and what does it print?", "what does the command that lists branches print"),
        ("How do I enable logging and where does it go?", "where does logging go"),
        ("How many workers are started and how do I change that number?", "how do I change workers"),
        ("How do I dump a database in Postgres and how do I restore it?", "how do I restore a database in Postgres"),
        ("Where are backups stored, and for how long are they kept?", "for how long are backups kept"),
        ("When and where was Acme founded?", "where was Acme founded"),
        ("Can you tell me what autovacuum does and how to enable it?", "how to enable autovacuum"),
        ("What is a hook and what is a cronjob?", "what is a cronjob"),
        ("What is the port of the server and who owns it?", "who owns the server"),
        ("Which port does tw-ingest use and who owns it?", "who owns tw-ingest"),
        ("What is the price of the pump and who sets it?", "who sets the price of the pump"),
        ("Which file does the server read and who owns it?", "who owns the file of the server"),
        ("Who is the test lead of Heron and where does he work?", "where does the test lead of Heron work"),
        ("When is the shop open and what does it cost?", "what does the shop cost"),
        ("How many days off for my wedding, and how much notice?", "how much notice (my wedding)"),
        ("How long is my leave and how much notice must I give?", "how much notice must I give (my leave)"),
    ],
)
def test_the_second_part_has_the_subject_of_the_first(question: str, second: str) -> None:
    assert split_question(question)[1:] == (second,)


@pytest.mark.parametrize(
    "question",
    [
        "What is the log, which is written by the server, used for?",
        "What happens when the pump fails and when the power is back?",
        "Which clients connect and are trusted by the server?",
        "What are the limits of tables and of columns?",
    ],
)
def test_a_clause_is_no_question(question: str) -> None:
    assert split_question(question) == ()


@pytest.mark.parametrize("question", ["Acme versus Borealis", "Is it open or is it closed?", "When does it open?"])
def test_sides_of_one_question_are_not_questions(question: str) -> None:
    assert split_question(question) == ()
