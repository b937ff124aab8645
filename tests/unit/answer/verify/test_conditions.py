"""The same condition in other words is kept; a condition that was dropped, swapped or turned round is not."""

from __future__ import annotations

import pytest

from ragstone.answer.check import find_objection
from ragstone.answer.verify.checks import check

DISK = "If the disk is full, ingest stops."
FEE = "Unless the fee is paid, the account is closed."
RECEIPT = "Refunds are paid only if the receipt is shown."
LIGHT = "The pump stops if the red warning light is flashing."
KEPT = [
    (DISK, "Ingest stops when the disk is full."),
    (DISK, "Ingest stops if the disk is full."),
    (DISK, "When the disk is full, ingest stops."),
    (DISK, "Once the disk is full, ingest stops."),
    (DISK, "With a full disk, ingest stops."),
    (DISK, "A full disk stops ingest."),
    ("The gate opens provided that a ticket is shown.", "The gate opens when a ticket is shown."),
    ("In case of fire, the lift stops.", "If there is a fire, the lift stops."),
    ("The fee is returned if the crossing is cancelled.", "The fee is returned after a cancelled crossing."),
    ("The pump stops if the water rises above the mark.", "When the water rises above the mark, the pump stops."),
    ("If it rains, the quay is shut and the slip is open.", "When it rains, the quay is shut."),
    ("If it rains, the quay is shut; the slip is open.", "The slip is open."),
    (RECEIPT, RECEIPT),
    (RECEIPT, "Refunds are paid when the receipt is shown."),
    ("Visitors with a ticket may enter.", "Visitors may enter with a ticket."),
    ("The bridge collapsed when the storm hit the coast.", "The bridge collapsed."),
    ("Trade resumed once the war was over.", "Trade resumed."),
    ("The firm provided the meals.", "The firm provided meals."),
    ("The list shows only the names of boats.", "The list displays only the names of boats."),
    ("The boat can only be used with sails.", "The boat can be used with sails only."),
    ("The firm held a feast and provided the meals.", "The firm provided the meals."),
    ("If this option is not used, the pump logs to the port.", "The pump logs to the port by default."),
    ("If no value is given, the pump runs for an hour.", "By default, the pump runs for an hour."),
    ("Unless told otherwise, the pump runs for an hour.", "By default, the pump runs for an hour."),
    ("Unless --wet is given, the pump starts at once.", "By default, the pump starts at once."),
    ("If you want to empty the tank, use the red pump.", "To empty the tank, the red pump is used."),
    ("If the body of an item is empty, the item is printed.", "An item whose body is empty is printed."),
    ("Unless the red lever is pulled, the gate closes.", "The gate closes except when the red lever is pulled."),
]
LOST = [
    (RECEIPT, "Refunds are paid."),
    ("The list shows only the names of boats.", "The list shows boats and prices."),
    ("If this option is used, the pump logs to the port.", "The pump logs to the port by default."),
    ("If this option is not used, the pump logs to the port.", "The pump logs to the port."),
    ("If the tank is not used, the pump stops.", "The pump stops by default."),
    ("If you want to empty the tank, the red pump is needed.", "The red pump is needed."),
    ("If the body of an item is empty, the item is printed.", "An item whose name is short is printed."),
    ("Staff receive a bonus when the yearly profit exceeds 5 million crowns.", "Staff receive a bonus."),
    ("Staff may work from home subject to approval.", "Staff may work from home."),
    ("Visitors with a ticket may enter.", "Visitors may enter."),
    ("The gate opens only when the tide is low.", "The gate opens."),
    ("The gate opens only after the bell has rung.", "The gate opens."),
    ("The fee is returned once the form is signed.", "The fee is returned."),
    ("The fee is returned provided the form is signed.", "The fee is returned."),
    (LIGHT, "The pump stops if the red warning light is steady."),
    ("The pump stops if the light is flashing red.", "The pump stops if the light is steady red."),
    (DISK, "Ingest stops."),
    (DISK, "Ingest stops for all users."),
    (DISK, "Ingest stops with an error."),
    (DISK, "The disk is full and ingest stops."),
    (DISK, "The disk is full."),
    (DISK, "Ingest stops when the network is down."),
    (DISK, "If ingest stops, the disk is full."),
    (DISK, "Ingest stops when the disk is not full."),
    (DISK, "Unless the disk is full, ingest stops."),
    (FEE, "If the fee is paid, the account is closed."),
    (FEE, "The account is closed when the fee is paid."),
    (FEE, "The account is closed for ever."),
    ("The gate opens provided that a ticket is shown.", "The gate opens at any time."),
    ("If the valve leaks, the reactor stops.", "The reactor stops once a year."),
    ("The fee is returned if the crossing is cancelled.", "The fee is returned on request."),
    ("If it rains, the quay is shut.", "The quay is shut where boats land."),
    ("The pump stops if the water rises above the mark.", "The pump stops when the water falls below the mark."),
]


@pytest.mark.parametrize(("source", "claim"), KEPT)
def test_a_condition_in_other_words_is_kept(source: str, claim: str) -> None:
    assert check(claim, source, passage=source).reasons == ()
    assert find_objection(claim, [source], source) == ""


@pytest.mark.parametrize(("source", "claim"), LOST)
def test_a_condition_left_out_or_changed_is_not(source: str, claim: str) -> None:
    found = check(claim, source, passage=source)
    assert found.conflicts or found.voids
    assert find_objection(claim, [source], source)


def test_a_sentence_of_nothing_but_conditions_states_nothing() -> None:
    assert check("The lift stops.", "if " * 300 + "the lift stops").voids


@pytest.mark.parametrize(
    ("source", "claim"),
    [(FEE, "The account is closed if the fee is not paid."), ("The account is closed if the fee is not paid.", FEE)],
)
def test_unless_is_if_not(source: str, claim: str) -> None:
    assert check(claim, source, passage=source).reasons == ()
