"""The questions and claims to develop on: complete, about pages that are there, and with sentences of those pages."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from bench.answers.collection import FOLDER, load_collection
from bench.answers.grade import holds, words_of

DEVELOP = load_collection("develop")
ANSWERABLE = [question for question in DEVELOP.questions if not question.kind.startswith("unanswerable")]
PLAIN = (".txt", ".md")
"""Formats whose words a file holds as they are shown, so that a sentence can be looked for without reading markup."""


def test_every_id_is_used_once() -> None:
    ids = Counter(line.id for line in (*DEVELOP.questions, *DEVELOP.claims))
    assert [name for name, count in ids.items() if count > 1] == []


def test_every_page_asked_about_is_there() -> None:
    asked = {line.document for line in (*ANSWERABLE, *DEVELOP.claims)}
    assert [page for page in sorted(asked) if not (DEVELOP.pages / page).is_file()] == []


def test_the_gold_of_every_question_holds_one_of_its_facts_at_least() -> None:
    without = [
        question.id
        for question in ANSWERABLE
        if not any(holds(question.gold, spelling) for spellings in question.facts for spelling in spellings)
    ]
    assert without == []


def test_follow_ups_and_only_they_have_an_earlier_question() -> None:
    assert [
        question.id for question in DEVELOP.questions if (question.kind == "follow-up") != bool(question.earlier)
    ] == []


@pytest.mark.parametrize("manual", sorted(folder.name for folder in DEVELOP.pages.iterdir()))
def test_golds_of_plain_pages_stand_there_word_for_word(manual: str) -> None:
    lines = [line for line in (*ANSWERABLE, *DEVELOP.claims) if line.document.startswith(f"{manual}/")]
    missing = [
        line.id for line in lines if line.document.endswith(PLAIN) and not stands_on_page(line.gold, line.document)
    ]
    assert missing == []


def stands_on_page(gold: str, page: str) -> bool:
    text = words_of((DEVELOP.pages / page).read_text("utf-8", errors="replace"))
    return f" {words_of(gold)} " in f" {text} "


def test_the_table_of_sources_counts_the_pages() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|(?:[^|]*\|){3} (\d+) \|", (FOLDER / "README.md").read_text("utf-8"), re.M)
    there = {folder.name: len(list(folder.iterdir())) for folder in DEVELOP.pages.iterdir()}
    assert {manual: int(count) for manual, count in rows} == there
