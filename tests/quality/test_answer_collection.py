"""The collection of questions and claims on real manuals: whole, true to its pages, and split by manual."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.quality.page_text import page_words, words

FOLDER = Path(__file__).parents[2] / "bench" / "answers"
MANUALS = [half for half in ("develop", "further", "reading", "measured") if (FOLDER / half / "pages").is_dir()]
HALVES = [*MANUALS, "everyday"]
WHOLE = all(list((FOLDER / half).glob("claims.jsonl")) for half in ("develop", "measured"))
PROMISED = (
    {"pages": 250, "answerable": 120, "unanswerable": 40, "true claims": 80, "false claims": 80}
    if WHOLE
    else {"pages": 130, "answerable": 65, "unanswerable": 22, "true claims": 42, "false claims": 42}
)
KINDS = {
    *("number", "duration", "person", "place", "setting", "command", "yes-no", "list", "definition", "steps", "reason"),
    *("other", "two-part", "follow-up"),
}
SHARED = {"id", "kind", "document", "gold"}
QUESTION = SHARED | {"question", "wording", "facts"}
CLAIM = SHARED | {"claim", "true"}
MOST_BYTES = 4_000_000

Line = dict[str, Any]


@cache
def read_lines(half: str, name: str) -> tuple[Line, ...]:
    """Return the questions or claims of a half; none while its writer has only put pages there."""
    path = FOLDER / half / f"{name}.jsonl"
    return tuple(json.loads(line) for line in path.read_text("utf-8").splitlines()) if path.exists() else ()


@cache
def list_pages(half: str) -> tuple[Path, ...]:
    return tuple(path for path in sorted((FOLDER / half / "pages").rglob("*")) if path.is_file())


@cache
def words_of(half: str, document: str) -> str:
    return page_words(FOLDER / half / "pages" / document)


def words_of_all(half: str) -> list[str]:
    return [words_of(half, str(page.relative_to(FOLDER / half / "pages"))) for page in list_pages(half)]


def answerable(half: str) -> list[Line]:
    return [line for line in read_lines(half, "questions") if line["kind"] != "unanswerable"]


def unanswerable(half: str) -> list[Line]:
    return [line for line in read_lines(half, "questions") if line["kind"] == "unanswerable"]


def total(name: str) -> list[Line]:
    return [line for half in HALVES for line in read_lines(half, name)]


@pytest.mark.parametrize("half", HALVES)
def test_every_question_has_its_fields(half: str) -> None:
    for line in answerable(half):
        fields = QUESTION | ({"earlier"} if line["kind"] == "follow-up" else set())
        assert fields <= set(line), line["id"]
        assert line["kind"] in KINDS, line["id"]
        assert line["wording"] in {"own", "near"}, line["id"]
        assert line["facts"], line["id"]
        assert all(fact and all(spelling.strip() for spelling in fact) for fact in line["facts"]), line["id"]
        assert len(line["facts"]) >= 2 or line["kind"] != "two-part", line["id"]
    for line in unanswerable(half):
        assert line["gold"] == "", line["id"]
        assert line["facts"] == [], line["id"]
        assert line["why"] in {"other", "near", "name"}, line["id"]
        assert bool(line.get("missing")) == (line["why"] == "name"), line["id"]


@pytest.mark.parametrize("half", HALVES)
def test_every_claim_has_its_fields(half: str) -> None:
    for line in read_lines(half, "claims"):
        assert set(line) >= CLAIM, line["id"]
        assert line["true"] in (True, False), line["id"]
        assert line["claim"].strip(), line["id"]
        assert line["kind"], line["id"]


@pytest.mark.parametrize("half", HALVES)
def test_every_gold_is_on_its_page_word_for_word(half: str) -> None:
    cited = [*answerable(half), *read_lines(half, "claims")]
    assert [line["id"] for line in cited if not (FOLDER / half / "pages" / line["document"]).is_file()] == []
    assert [line["id"] for line in cited if not words(line["gold"])] == []
    assert [line["id"] for line in cited if words(line["gold"]) not in words_of(half, line["document"])] == []


@pytest.mark.parametrize("half", HALVES)
def test_every_fact_is_on_a_page_in_one_of_its_spellings(half: str) -> None:
    """The second fact of a two-part question may be on another page than its gold."""
    for line in answerable(half):
        texts = words_of_all(half) if line["kind"] == "two-part" else [words_of(half, line["document"])]
        for fact in line["facts"]:
            assert any(words(spelling) in text for text in texts for spelling in fact), line["id"]


@pytest.mark.parametrize("half", HALVES)
def test_a_name_that_is_said_to_be_missing_is_on_no_page(half: str) -> None:
    named = {line["id"]: words(line["missing"]) for line in unanswerable(half) if line["why"] == "name"}
    assert [one for one, name in named.items() if any(name in text for text in words_of_all(half))] == []


def test_ids_and_wordings_are_unique() -> None:
    lines = [*total("questions"), *total("claims")]
    ids = [line["id"] for line in lines]
    assert len(ids) == len(set(ids))
    claims = [words(line["claim"]) for line in total("claims")]
    assert len(claims) == len(set(claims))
    asked = [(words(line["question"]), *line.get("earlier", ())) for line in total("questions")]
    assert len(asked) == len(set(asked))


def test_no_manual_is_in_both_halves() -> None:
    manuals = [{page.relative_to(FOLDER / half / "pages").parts[0] for page in list_pages(half)} for half in HALVES]
    assert len(set.union(*manuals)) == sum(map(len, manuals))
    contents = [{page.read_bytes() for page in list_pages(half)} for half in HALVES]
    assert len(set.union(*contents)) == sum(map(len, contents))


@pytest.mark.parametrize("half", HALVES)
def test_the_pages_are_small_enough_for_a_checkout(half: str) -> None:
    assert sum(page.stat().st_size for page in list_pages(half)) <= MOST_BYTES


@pytest.mark.parametrize("half", [half for half in MANUALS if read_lines(half, "questions")])
def test_each_half_asks_every_kind_and_a_third_in_other_words(half: str) -> None:
    asked = answerable(half)
    assert {line["kind"] for line in asked} == KINDS
    assert sum(line["wording"] == "own" for line in asked) >= len(asked) / 3
    refused = unanswerable(half)
    assert sum(line["why"] != "other" for line in refused) >= len(refused) / 2


def test_the_collection_is_as_large_as_promised() -> None:
    pages = [page for half in HALVES for page in list_pages(half)]
    assert len(pages) >= PROMISED["pages"]
    assert len({page.suffix.lower() for page in pages}) >= 6
    assert sum(len(answerable(half)) for half in HALVES) >= PROMISED["answerable"]
    assert sum(len(unanswerable(half)) for half in HALVES) >= PROMISED["unanswerable"]
    assert sum(line["true"] for line in total("claims")) >= PROMISED["true claims"]
    assert sum(not line["true"] for line in total("claims")) >= PROMISED["false claims"]
