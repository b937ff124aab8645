"""Claims that share nearly all their words with a sentence that does not say them."""

from __future__ import annotations

import pytest

from ragstone.answer.check import find_objection
from ragstone.answer.verify.checks import check
from ragstone.answer.verify.objections import Objection, ObjectionKind

FARES = "The adult fare is 12 crowns and the child fare is 6 crowns."
BUTTONS = "The red button stops the engine and the green button starts it."
PAIRS = [
    (FARES, "The adult fare is 6 crowns."),
    (FARES, "The child fare is 12 crowns."),
    ("Warranty: 24 months for motors and 12 months for seals.", "Warranty is 24 months for seals."),
    ("The lake is 40 m deep and 3 km wide.", "The lake is 40 m wide."),
    ("Staff get 25 days of leave, managers 30.", "Managers get 25 days of leave."),
    ("Exports fell by 5% in 2020 after they rose by 9% in 2019.", "Exports fell by 5% in 2019."),
    (BUTTONS, "The green button stops the engine."),
    ("Kestrel and Merlin are certified; the Merlin pump is withdrawn.", "The pump Kestrel is withdrawn."),
    ("It is false that the bridge collapsed.", "The bridge collapsed."),
    ("The claim that salt causes gout is wrong.", "Salt causes gout."),
    ("The minister denied that the ship sank.", "The ship sank."),
    ("Critics claim that the drug causes cancer.", "The drug causes cancer."),
    ("The mayor allegedly took money.", "The mayor took money."),
    ("If the valve leaks, the reactor stops.", "The reactor stops."),
    ("Unless the fee is paid, the account is closed.", "The account is closed."),
    ("Had the dam failed, the village would have been flooded.", "The village was flooded."),
    ("Former employees keep access.", "Employees keep access."),
    ("The ship almost sank.", "The ship sank."),
    ("The crew failed to reach the pole.", "The crew reached the pole."),
    ("The dose is 5 mg per day.", "The dose is 5 mg per hour."),
    ("The tank holds 500 litres.", "The tank holds 500 gallons."),
    ("Acme acquired Borealis in 2021.", "Borealis acquired Acme in 2021."),
    ("Sales in Norway exceeded sales in Sweden.", "Sales in Sweden exceeded sales in Norway."),
    ("Anna Berg lent Paul Stein a boat.", "Anna Stein lent Paul Berg a boat."),
    ("The contract ends on 3 May 2024.", "The contract ends before 3 May 2024."),
]
TRUE = [
    (FARES, "The child fare is 6 crowns."),
    ("Warranty: 24 months for motors and 12 months for seals.", "Warranty is 12 months for seals."),
    ("The lake is 40 m deep and 3 km wide.", "The lake is 3 km wide."),
    ("Staff get 25 days of leave, managers 30.", "Managers get 30 days of leave."),
    ("In 2020 revenue was 5 crowns and in 2021 it was 8 crowns.", "In 2021 revenue was 8 crowns."),
    (BUTTONS, "The green button starts the engine."),
    ("The firm was founded by Maria Lind.", "Maria Lind founded the firm."),
    ("The slip is open; if it rains, the quay is shut.", "The slip is open."),
]


@pytest.mark.parametrize(("source", "claim"), PAIRS)
def test_a_false_friend_is_a_conflict_or_says_nothing(source: str, claim: str) -> None:
    found = check(claim, source, passage=source)
    assert found.conflicts or found.voids


@pytest.mark.parametrize(("source", "claim"), PAIRS)
def test_an_answer_may_not_say_it_either(source: str, claim: str) -> None:
    assert find_objection(claim, [source], source)


@pytest.mark.parametrize(("source", "claim"), TRUE)
def test_what_is_said_so_stands(source: str, claim: str) -> None:
    found = check(claim, source, passage=source)
    assert (found.conflicts, found.voids) == ((), ())
    assert find_objection(claim, [source], source) == ""


def test_a_dropped_limit_is_a_gap() -> None:
    source = "Children under 12 travel free on Sundays."
    assert check("Children travel free on Sundays.", source).gaps == (Objection(ObjectionKind.LIMITED),)
    assert check("Children under 12 travel free.", source).gaps == (Objection(ObjectionKind.LIMITED),)


def test_rates_convert() -> None:
    assert check("The flow is 1 litre per second.", "The flow is 60 litres per minute.").reasons == ()
