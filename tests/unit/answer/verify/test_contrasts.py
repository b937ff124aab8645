"""Conditions, units and options in which a claim differs from a sentence about the same."""

from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.answer.verify.slots import find_other_condition, find_other_option, find_other_unit

GATE = "The sluice gate only opens if the lock chamber is empty."


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The sluice gate opens even if the lock chamber is full.", GATE),
        ("The crane moves even when the brake is set.", "The crane moves unless the brake is set."),
        ("The pump runs with or without oil.", "The pump does not run without oil."),
        ("The gauge may be read whatever the tide is.", "The gauge may be read as long as the tide is low."),
    ],
)
def test_a_claim_that_denies_the_limit_of_a_sentence_is_a_rival(claim: str, sentence: str) -> None:
    assert find_other_condition(claim, sentence)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The sluice gate opens even if the lock chamber is full.", "The sluice gate opens even if nobody is there."),
        ("The sluice gate opens if the lock chamber is full.", GATE),
        ("The sluice gate opens even if the harbour master sleeps.", GATE),
        ("The sluice gate opens even if the lock chamber is full.", "The sluice gate opens into the lock chamber."),
    ],
)
def test_a_limit_that_a_claim_does_not_deny_is_no_rival(claim: str, sentence: str) -> None:
    assert find_other_condition(claim, sentence) is None


async def test_a_claim_that_denies_a_limit_is_refuted_with_both_wordings() -> None:
    text = "The sluice gate opens unless the lock chamber is used."
    verdict = await verified("The sluice gate opens even if the lock chamber is used.", hit(text))
    assert verdict.stance == "refuted"
    assert "it says “unless the lock chamber is used”" in verdict.evidence[0].failed[0]


def test_another_unit_of_the_same_kind_is_a_rival() -> None:
    sentence = "The pause of the bell, in milliseconds, between two strokes."
    rival = find_other_unit("The pause of the bell is given in seconds.", sentence)
    assert rival
    assert (rival.claimed, rival.stated) == ("in seconds", "in milliseconds")
    assert find_other_unit("The pause of the bell is given in milliseconds.", sentence) is None
    assert find_other_unit("The pause of the bell is given in bytes.", sentence) is None
    assert find_other_unit("The pause of the bell is given in strokes.", sentence) is None


async def test_a_claim_in_another_unit_is_refuted_by_a_sentence_and_by_a_row() -> None:
    claim = "The bell_pause of the ferry is specified in minutes."
    sentence = "The bell_pause of the ferry is the time to wait, specified in milliseconds."
    row = "| Name | Meaning |\n| --- | --- |\n| bell_pause | Time of the ferry to wait, specified in milliseconds. |"
    assert (await verified(claim, hit(sentence))).stance == "refuted"
    assert (await verified(claim, hit(row))).stance == "refuted"


def test_another_option_in_the_same_place_is_a_rival() -> None:
    claim, sentence = "The gate is closed by the shutgate command.", "The gate is closed by the latch command."
    assert find_other_option(claim, sentence, "")
    assert find_other_option(claim, sentence, "shutgate") is None
    assert find_other_option(claim, "The gate is closed by the shutgate command.", "") is None
    assert find_other_option(claim, "The gate is closed by the latch option.", "") is None


async def test_a_claim_that_names_another_directive_is_refuted() -> None:
    text = "The largest change of the water level between two gauges can be limited by the floodgate directive."
    claim = "The largest change of the water level between two gauges is limited by the {} directive."
    assert (await verified(claim.format("towline"), hit(text))).stance == "refuted"
    assert (await verified(claim.format("floodgate"), hit(text))).stance == "supported"


@pytest.mark.parametrize(
    ("claim", "text", "stance"),
    [
        (
            'A dot stands for the "and" and a dash for the "or".',
            'In other words, a dot stands for the "or" and a dash for the "and".',
            "refuted",
        ),
        (
            "When depth and speed are in conflict, the pilot prefers depth.",
            "When depth and speed are in conflict, the pilot prefers speed.",
            "unknown",
        ),
        (
            "In the harbour, ropes are never left on the quay.",
            "In particular, ropes are never left on the quay of the harbour.",
            "supported",
        ),
        (
            "Boats are neither sold nor repaired by the harbour office.",
            "Boats are not sold nor repaired by the harbour office.",
            "supported",
        ),
        (
            "The tow rope was given by Anna Holm.",
            "Piet Rood : anchor chain\nAnna Holm : life belts\nJan Visser : tow rope\nEva Lind : signal flags",
            "unknown",
        ),
    ],
)
async def test_words_that_join_or_stand_twice_are_read_as_they_are_meant(claim: str, text: str, stance: str) -> None:
    assert (await verified(claim, hit(text))).stance == stance
