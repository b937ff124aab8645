"""Claims on short pages of several kinds, as a first user tries them."""

from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.core.answers import Stance

SHEET = (
    "The Vela lamp is powered by two AA cells, which last about 18 months.\n\n"
    "| Model | Range | Price |\n|---|---|---|\n| Vela S | 50 m | 49 EUR |\n| Vela L | 300 m | 89 EUR |\n\n"
    "The lamp was designed by Kei Sato and released in 2021."
)
MINUTES = (
    "Minutes of the harbour council, 4 May\n\nThe council approved the budget. Mail goes out by ferry.\n"
    "The next meeting takes place on 8 June in Lyme."
)


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("The Vela L has a range of 300 m.", "supported"),
        ("The Vela L has a range of 50 m.", "refuted"),
        ("The Vela S costs 49 euros.", "supported"),
        ("The Vela L costs 49 euros.", "refuted"),
        ("The Vela L weighs 49 g.", "unknown"),
        ("Kei Sato designed the Vela lamp.", "supported"),
        ("Ida Holm designed the Vela lamp.", "refuted"),
        ("The Vela lamp was released in 2021.", "supported"),
        ("The Vela lamp was released in 2019.", "refuted"),
        ("The lamp is powered by a lithium cell.", "unknown"),
    ],
)
async def test_claims_on_a_product_sheet(claim: str, stance: Stance) -> None:
    assert (await verified(claim, hit(SHEET, title="Vela lamp"))).stance == stance


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("The next council meeting takes place on 8 June.", "supported"),
        ("The next budget meeting takes place on 8 June.", "unknown"),
    ],
)
async def test_what_a_sentence_leaves_out_may_stand_in_the_heading_over_it(claim: str, stance: Stance) -> None:
    assert (await verified(claim, hit(MINUTES))).stance == stance


PLANS = (
    "Every request carries a key. Keys expire after 90 days unless they are renewed.\n\n"
    "The free plan allows 1,000 messages per hour; the team plan allows 50,000."
)
LEASE = "The monthly rent is 840 euros, plus 160 euros for water. Cats are allowed."
LIGHTHOUSE = (
    "The lighthouse was built in 1874. It stands 34 metres high and its light can be seen from 19 nautical miles. "
    "The first keeper was Greta Dunn, who lived there for 22 years. She was succeeded by Owen Pryce in 1896. "
    "The tower has 152 steps and no lift."
)


@pytest.mark.parametrize(
    ("page", "claim", "stance"),
    [
        (PLANS, "Keys expire after 90 days.", "unknown"),
        (PLANS, "Keys expire after 30 days.", "refuted"),
        (PLANS, "The team plan allows 50,000 messages per hour.", "unknown"),
        (PLANS, "The free plan allows 50,000 messages per hour.", "refuted"),
        (LEASE, "The rent is 840 euros a month.", "supported"),
        (LEASE, "The rent is 940 euros a month.", "refuted"),
        (LEASE, "The rent is 840 euros a week.", "unknown"),
        (LIGHTHOUSE, "The lighthouse is 34 metres high.", "supported"),
        (LIGHTHOUSE, "Greta Dunn succeeded Owen Pryce.", "unknown"),
        (LIGHTHOUSE, "The tower has 152 steps.", "supported"),
        (LIGHTHOUSE, "The tower has a lift.", "refuted"),
    ],
)
async def test_claims_on_short_pages(page: str, claim: str, stance: Stance) -> None:
    assert (await verified(claim, hit(page))).stance == stance
