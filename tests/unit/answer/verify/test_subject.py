from __future__ import annotations

from ragstone.answer.quotes import Quote
from ragstone.answer.units import AnswerUnit, read_units
from ragstone.answer.verify.statements import find_evidence
from ragstone.answer.verify.subject import name_subject, read_context, read_text
from ragstone.core.types import Hit

ENTRY = "max_wait (integer)\n  Sets how long the pump waits. Longer waits save power. The default is 3 seconds.\n"


def make_hit(text: str, title: str = "Pump", section: str = "") -> Hit:
    return Hit("c", "d", title, "docs/pump.md", section, None, text, 1.0, {}, {}, 0, len(text))


def make_unit(text: str, before: str = "") -> AnswerUnit:
    hit = make_hit(before + text)
    earlier = Quote(hit, 0, len(before.rstrip())) if before else None
    return AnswerUnit(Quote(hit, len(before), len(hit.text)), "sentence", 0, before=earlier)


def test_each_sentence_of_an_entry_is_evidence_and_knows_its_term() -> None:
    units = find_evidence([make_hit(ENTRY)])
    assert [unit.text for unit in units] == [
        "Sets how long the pump waits.",
        "Longer waits save power.",
        "The default is 3 seconds.",
    ]
    assert all("max_wait" in read_context(unit).entry for unit in units)
    assert read_context(units[2]).before == ("Sets how long the pump waits.", "Longer waits save power.")


def test_a_short_entry_is_read_as_one_with_its_term() -> None:
    (unit,) = [unit for unit in read_units(make_hit("-x\n  Stops the pump at once.\n")) if unit.kind == "entry"]
    assert read_text(unit) == "-x: Stops the pump at once."


def test_the_term_of_an_entry_is_the_subject_of_its_sentences() -> None:
    unit = find_evidence([make_hit(ENTRY)])[2]
    assert name_subject("The default of max_wait is 3 seconds.", unit, unit.text) == (
        "max_wait: The default is 3 seconds."
    )
    assert name_subject("The default of min_wait is 3 seconds.", unit, unit.text) == unit.text


def test_a_word_that_points_back_is_replaced() -> None:
    unit = make_unit("This was the first pump with a clock.", "Model K7 came out in May. ")
    assert name_subject("K7 was the first pump with a clock.", unit, unit.text).startswith("Model K7 was the first")
    option = find_evidence([make_hit("max_wait (integer)\n  Sets the wait. This option is slow on ships.\n")])[1]
    assert name_subject("The option max_wait is slow.", option, option.text) == "max_wait is slow on ships."


def test_a_name_behind_the_verb_is_put_behind_the_sentence() -> None:
    unit = make_unit("The lid has two hinges.")
    assert name_subject("The lid is made for Pump.", unit, unit.text) == "The lid has two hinges (Pump)."


def test_a_sentence_with_a_name_of_its_own_is_about_that_one() -> None:
    unit = make_unit("Borealis sells it.")
    assert name_subject("Pump sells it.", unit, unit.text) == "Borealis sells it."
