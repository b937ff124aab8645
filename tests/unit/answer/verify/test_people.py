from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.core.answers import Status

SIGNED = "Signed for the Seller: Lena Farr, Managing Director\n\nSigned for the Buyer: Dov Achen, Director of Works\n"


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("Dov Achen is Director of Works.", "VERIFIED"),
        ("Dov Achen signed for the Buyer.", "LIKELY"),
        ("Dov Achen is Managing Director.", "UNVERIFIED"),
        ("Dov Achen signed for the Seller.", "UNVERIFIED"),
        ("Lena Farr is Director of Works.", "UNVERIFIED"),
        ("Lena Farr signed for the Buyer.", "UNVERIFIED"),
    ],
)
@pytest.mark.parametrize("title", ["", "Selling Agreement"])
async def test_lines_of_a_list_of_signatures_are_about_one_person_each(claim: str, status: Status, title: str) -> None:
    assert (await verified(claim, hit(SIGNED, title=title))).status == status


async def test_an_office_that_the_source_does_not_name_is_not_supported() -> None:
    text = "The first to know is the pilot; after that it goes to the engineering manager, Max Rehn."
    verdict = await verified("Max Rehn is Head of People.", hit(text))
    assert (verdict.status, verdict.sources) == ("UNVERIFIED", 0)


async def test_a_row_that_lacks_a_name_of_the_claim_is_no_source() -> None:
    row = "| Role | Name | Site |\n|---|---|---|\n| Sponsor | Lena Farr | Sula |\n"
    verdict = await verified("Lena Farr signed for the Seller.", hit(SIGNED), hit(row, "d2"))
    assert (verdict.status, verdict.sources) == ("LIKELY", 1)
