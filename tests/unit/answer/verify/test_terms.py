from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.core.answers import Stance

OPTIONS = """\
-w, --wash
  Wash the deck of the ferry after each crossing.

-d, --dry
  Ring the bell of the ferry before each crossing.

-s
  Same as -d.
"""
TABLE = "| Key | Meaning |\n|---|---|\n| K | Opens the sluice of the lock |\n| M | Prints the level of the tide |\n"


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("The --dry option washes the deck of the ferry after each crossing.", "refuted"),
        ("The --wash option washes the deck of the ferry after each crossing.", "supported"),
        ("The --shine option washes the deck of the ferry after each crossing.", "unknown"),
        ("The key K opens the sluice of the lock.", "supported"),
    ],
)
async def test_what_an_entry_says_of_another_term_refutes_a_claim(claim: str, stance: Stance) -> None:
    assert (await verified(claim, hit(OPTIONS), hit(TABLE, "d2"))).stance == stance


async def test_a_term_that_is_said_to_be_the_same_as_another_is_no_other() -> None:
    assert (await verified("-s rings the bell of the ferry.", hit(OPTIONS))).stance != "refuted"


async def test_a_file_that_a_sentence_begins_with_is_its_term() -> None:
    text = (
        "/var/mail/sent.box holds the letters that the clerk posted. "
        "/var/mail/lost.box holds the letters that the clerk could not post."
    )
    assert (await verified("The letters that the clerk posted are in lost.box.", hit(text))).stance == "refuted"
    assert (await verified("The letters that the clerk posted are in sent.box.", hit(text))).stance != "refuted"
