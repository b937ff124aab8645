from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.core.answers import Stance


@pytest.mark.parametrize(
    ("claim", "source", "stance"),
    [
        ("Ida Sole made the survey of the bay.", "The survey of the bay was made by Ida Sole.", "supported"),
        ("Files may be painted before they are added.", "Files must be added before they are painted.", "refuted"),
        ("Claims are due within twelve weeks.", "Claims are due within twelve months.", "refuted"),
        ("The tool vi was written by Ada Smith.", "In 1976 Bill Joy wrote and released the tool vi.", "refuted"),
        ("ed was created by Bill Joy.", "ed was created, along with the Unix system, by Ken Thompson.", "refuted"),
        (
            "Exit status is 1 if the host is down.",
            "Exit status is 0 on success, 1 if the command fails, and 2 if the host is down.",
            "refuted",
        ),
    ],
)
async def test_a_claim_in_other_words(claim: str, source: str, stance: Stance) -> None:
    assert (await verified(claim, hit(source))).stance == stance


async def test_a_time_belongs_to_the_day_behind_it() -> None:
    source = hit("The gate opens at 5:30 on working days and at 7:00 on Sundays.")
    assert (await verified("The gate opens at 7:00 on working days.", source)).stance != "supported"
    assert (await verified("The gate opens at 7:00 on Sundays.", source)).stance == "supported"


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Nobody was injured in the crash at gate four.", "The tanker Brisa damaged a fender at gate four."),
        ("The wax was sold in March 1989 and March 1990.", "The wax was sold in March 1990."),
        ("Parts are named after files without their ending.", "Parts are named after files, stripped of any ending."),
    ],
)
async def test_what_speaks_of_something_else_or_of_less_refutes_nothing(claim: str, source: str) -> None:
    assert (await verified(claim, hit(source))).stance != "refuted"


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("It checks the name of the host by default.", "refuted"),
        ("It does not check the name of the host by default.", "unknown"),
        ("The default wait is one hour.", "supported"),
        ("The default wait is two hours.", "refuted"),
    ],
)
async def test_what_an_option_does_by_default(claim: str, stance: Stance) -> None:
    options = (
        "--check\n  Check the name of the host. This option is disabled by default.\n\n"
        "--wait\n  Seconds to wait for it. The default is 3600 (1 hour).\n"
    )
    assert (await verified(claim, hit(options))).stance == stance


async def test_the_answer_no_to_a_question_is_no_support_for_what_was_asked() -> None:
    text = "Do the tools support the .7z format?\n\nNo. Use other tools to handle .7z files."
    assert (await verified("The tools support the .7z format.", hit(text))).stance != "supported"
