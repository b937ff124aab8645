"""Claims about how often something comes: every two hours, weekly, twice a day."""

from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.answer.verify.checks import check
from ragstone.answer.verify.support import find_unsupported
from ragstone.core.answers import Stance

HABITS = (
    "Laptops are replaced every four years. The scheduler runs every five minutes. Reports go out every two weeks. "
    "The service is invoiced quarterly in advance. The pumps are greased twice a day. Masts are painted every year."
)
WATCH = (
    "| Level | Respond within | Update customers |\n|---|---|---|\n"
    "| P2 | 1 hour | every 2 hours |\n| P3 | 1 day | daily |"
)
TERMS = (
    "Backup of the ledger\n  Runs every two hours, and is kept for one day.\n\nRotation of the keys\n  Done monthly.\n"
)


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("Laptops are replaced every year.", "refuted"),
        ("Laptops are replaced yearly.", "refuted"),
        ("Laptops are replaced annually.", "refuted"),
        ("Laptops are replaced every three years.", "refuted"),
        ("Laptops are replaced every 48 months.", "supported"),
        ("The scheduler runs every minute.", "refuted"),
        ("The scheduler runs hourly.", "refuted"),
        ("The scheduler runs twelve times an hour.", "supported"),
        ("Reports go out every week.", "refuted"),
        ("Reports go out weekly.", "refuted"),
        ("Reports go out once a week.", "refuted"),
        ("Reports go out monthly.", "refuted"),
        ("Reports go out every other week.", "supported"),
        ("Reports go out every fortnight.", "supported"),
        ("The service is invoiced monthly in advance.", "refuted"),
        ("The service is invoiced every quarter in advance.", "supported"),
        ("The service is invoiced every three months in advance.", "supported"),
        ("The pumps are greased daily.", "refuted"),
        ("The pumps are greased every 12 hours.", "supported"),
        ("Masts are painted every two years.", "refuted"),
        ("Masts are painted annually.", "supported"),
        ("Masts are painted once a year.", "supported"),
    ],
)
async def test_a_period_is_read_however_it_is_written(claim: str, stance: Stance) -> None:
    assert (await verified(claim, hit(HABITS))).stance == stance


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("For P2, customers are updated every hour.", "refuted"),
        ("For P2, customers are updated hourly.", "refuted"),
        ("For P2, customers are updated every 2 hours.", "supported"),
        ("For P3, customers are updated every day.", "supported"),
        ("For P3, customers are updated every hour.", "refuted"),
        ("The backup of the ledger runs every day.", "refuted"),
        ("The backup of the ledger runs every 120 minutes.", "supported"),
        ("The rotation of the keys is done weekly.", "refuted"),
        ("The rotation of the keys is done every month.", "supported"),
    ],
)
async def test_a_period_is_read_in_rows_and_entries(claim: str, stance: Stance) -> None:
    assert (await verified(claim, hit(WATCH, "watch"), hit(TERMS, "terms"))).stance == stance


async def test_a_time_is_no_rival_of_how_often_something_comes() -> None:
    source = hit("A full copy of the log is made every night at 02:30 and kept for 35 days.")
    assert (await verified("The nightly full copy of the log is retained for 35 days.", source)).stance == "supported"
    assert (await verified("The nightly full copy of the log is retained for 30 days.", source)).stance == "refuted"


@pytest.mark.parametrize(
    ("statement", "is_said"),
    [
        ("Laptops are replaced every year.", False),
        ("Reports go out monthly.", False),
        ("Reports go out every fortnight.", True),
        ("The service is invoiced every quarter in advance.", True),
    ],
)
def test_a_statement_is_held_to_the_period_of_its_source(statement: str, is_said: bool) -> None:
    assert (not find_unsupported(statement, HABITS.split(". "), HABITS)) is is_said


def test_an_adjective_tells_the_period_and_denies_no_other() -> None:
    assert check("The mail is sent weekly.", "The weekly mail is sent.").reasons == ()
    assert check("The mail is sent daily.", "The weekly mail is sent.").conflicts == ()
    assert check("The mail is sent weekly.", "The mail is sent on Mondays.").conflicts == ()
