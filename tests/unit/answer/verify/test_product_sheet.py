"""Claims on a product sheet and on minutes, as a first user tries them."""

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
