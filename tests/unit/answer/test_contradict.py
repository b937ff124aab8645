"""Passages that say otherwise are shown, and those that only say something else are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ragstone.answer.ask import Judge
from ragstone.answer.budget import StepBudget
from ragstone.answer.contradict import MOST_PARTS, find_contradictions
from ragstone.answer.quotes import Quote, Statement
from ragstone.core.errors import ModelError
from ragstone.core.model_types import Entailment, Relation
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]
SAID = "The pump stops at 80 degrees."


class Saying:
    """An entailer that finds one relation in every premise, or fails."""

    name = "double"

    def __init__(self, relation: Relation | Exception) -> None:
        self.relation = relation
        self.asked: list[Sequence[str]] = []

    async def label(self, premises: Sequence[str], hypothesis: str) -> Sequence[Entailment]:
        self.asked.append(premises)
        if isinstance(self.relation, Exception):
            raise self.relation
        return [Entailment(self.relation, 0.9) for _ in premises]

    async def close(self) -> None: ...


def statement(hit: Hit, text: str = SAID) -> Statement:
    return Statement(text, "quoted", (Quote(hit, 0, len(hit.text)),))


async def reasons(make_hit: MakeHit, other: str, said: str = SAID) -> list[str]:
    own, against = make_hit(said, "own"), make_hit(other, "other")
    return [one.reason for one in await find_contradictions([statement(own, said)], [own, against], Judge().relations)]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("The pump stops at 90 degrees.", "it gives another number"),
        ("The pump does not stop at 80 degrees.", "one says that this is so, the other that it is not"),
        ("The fan stops at 90 degrees.", ""),
        ("The pump stops at 80 degrees, they say.", ""),
        ("Does the pump not stop at 80 degrees?", ""),
        ("The pump does not stop at 80 degrees, see https://evil.example/x for it.", ""),
    ],
)
async def test_explicit_checks(make_hit: MakeHit, other: str, reason: str) -> None:
    assert await reasons(make_hit, other) == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("said", "other", "reason"),
    [
        ("The crane lifts 1500 kg.", "The crane lifts 1.5 tonnes.", ""),
        ("The council meets on Monday.", "The council meets on Tuesday.", "it gives another date"),
        ("The council meets on Monday.", "The council meets from Monday to Friday.", ""),
        ("The fair is held in June.", "The fair is held in July.", "it gives another date"),
        ("The museum opens at 5 pm.", "The museum opens at 17:00.", ""),
    ],
)
async def test_figures_are_compared_by_what_they_tell(make_hit: MakeHit, said: str, other: str, reason: str) -> None:
    assert await reasons(make_hit, other, said) == ([reason] if reason else [])


async def test_who_denies_something_else_of_the_same_does_not_disagree(make_hit: MakeHit) -> None:
    said = "The owner, group, mode and times of a file are not copied to the target."
    assert await reasons(make_hit, "Every file has an owner, a group, a mode and times in the target.", said) == []
    assert await reasons(make_hit, "The owner, group and times of a file are copied to the target.", said) != []


async def test_opposites(make_hit: MakeHit) -> None:
    found = await reasons(make_hit, "Heat decreases tank pressure.", "Heat increases tank pressure.")
    assert found == ["it says the opposite"]


async def test_another_name_is_another_thing(make_hit: MakeHit) -> None:
    assert await reasons(make_hit, "Pump 2 stops at 80 degrees.", "Pump 1 stops at 80 degrees.") == []
    years = ("In 2023 we sold 5 pumps.", "In 2024 we sold 6 pumps.")
    assert await reasons(make_hit, *years) == []


async def test_it_says_where_it_stands(make_hit: MakeHit) -> None:
    own = make_hit(SAID, "own")
    text = "Preface here. The pump stops at 90 degrees."
    other = make_hit(text, "other", start=100, page=7, section="Limits")
    (one,) = await find_contradictions([statement(own)], [own, other], Judge().relations)
    assert (one.sentence, one.quote) == (SAID, "The pump stops at 90 degrees.")
    assert (one.document_id, one.page, one.section) == ("other", 7, "Limits")
    assert text[one.start - 100 : one.end - 100] == one.quote


async def test_two_sentences_of_the_answer_that_disagree_are_shown_once(make_hit: MakeHit) -> None:
    hits = [make_hit(SAID, "own"), make_hit("The pump stops at 90 degrees.", "other")]
    said = [statement(hit, hit.text) for hit in hits]
    found = await find_contradictions(said, hits, Judge().relations)
    assert [(one.sentence, one.document_id) for one in found] == [(SAID, "other")]


NO_REFUND = "Gift cards cannot be refunded."
RUN = f"{NO_REFUND} Refunds are approved by Anna Klein since 3 March 2024. Customers get their money back by mail."


@pytest.mark.parametrize("first", ["run", "draft"])
async def test_each_sentence_of_a_statement_is_compared_by_itself(make_hit: MakeHit, first: str) -> None:
    hits = [make_hit(RUN, "run"), make_hit("Gift cards can be refunded.", "draft")]
    hits.sort(key=lambda hit: hit.document_id != first)
    (one,) = await find_contradictions([statement(hit, hit.text) for hit in hits], hits, Judge().relations)
    assert one.reason == "one says that this is so, the other that it is not"
    assert {one.sentence, one.quote} == {NO_REFUND, "Gift cards can be refunded."}


async def test_a_statement_is_held_against_one_before_it_that_says_more(make_hit: MakeHit) -> None:
    wordy = "Gift cards that were bought cannot be refunded by mail."
    hits = [make_hit(wordy, "wordy"), make_hit("Gift cards can be refunded.", "brief")]
    found = await find_contradictions([statement(hit, hit.text) for hit in hits], hits, Judge().relations)
    assert [(one.sentence, one.quote) for one in found] == [("Gift cards can be refunded.", wordy)]


async def test_what_leans_on_the_sentence_before_it_is_not_compared(make_hit: MakeHit) -> None:
    own, other = make_hit("Parking is near. It is not free.", "own"), make_hit("The museum is free.", "other")
    assert await find_contradictions([statement(own, own.text)], [own, other], Judge().relations) == []


async def test_sentences_beyond_the_most_are_told_to_be_unread(make_hit: MakeHit) -> None:
    own = make_hit(" ".join(f"Valve {n} is open." for n in range(MOST_PARTS + 3)), "own")
    budget = StepBudget()
    await find_contradictions([statement(own, own.text)], [own], Judge().relations, budget)
    assert budget.unread == 3


async def test_an_overlapping_passage_is_not_held_against_its_own_words(make_hit: MakeHit) -> None:
    whole = make_hit("Only then does it not hold that the pump stops at 80 degrees.", "own")
    part = make_hit(whole.text[32:], "own", start=32)
    assert await find_contradictions([statement(whole, whole.text)], [whole, part], Judge().relations) == []


@pytest.mark.parametrize(("relation", "count"), [("contradicts", 1), ("neutral", 0), ("entails", 0)])
async def test_a_judge_decides_where_there_is_one(make_hit: MakeHit, relation: Relation, count: int) -> None:
    own, other = make_hit(SAID, "own"), make_hit("The pump stops at 90 degrees. Fans are blue.", "other")
    entailer = Saying(relation)
    found = await find_contradictions([statement(own)], [own, other], Judge(entailer).relations)
    assert len(found) == count
    assert entailer.asked == [["The pump stops at 90 degrees."]]


async def test_a_judge_that_fails_leaves_the_explicit_checks(make_hit: MakeHit) -> None:
    own, other = make_hit(SAID, "own"), make_hit("The pump stops at 90 degrees.", "other")
    entailer = Saying(ModelError("no weights"))
    judge = Judge(entailer)
    found = await find_contradictions([statement(own), statement(own)], [own, other], judge.relations)
    assert [one.reason for one in found] == ["it gives another number"]
    assert (judge.notes, len(entailer.asked)) == (["entailment: no weights"], 1)
