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


@pytest.mark.parametrize(
    ("claim", "source", "stance"),
    [
        ("Elves are immune to frost and open to fire.", "They are immune to fire, and open to frost.", "refuted"),
        (
            "The chart shows tugs as a red dot and barges as a blue dot.",
            "On the chart, barges are shown by a red dot, tugs by a blue dot.",
            "refuted",
        ),
        (
            "Rent is the sum charged by the tenant to the owner for the use of the house.",
            "The sum charged by the owner to the tenant for the use of the house.",
            "refuted",
        ),
        (
            "The code of a room always begins with a #.",
            "Type the code of a room, which always begins with a +.",
            "refuted",
        ),
        (
            "The code of a room always begins with a +.",
            "Type the code of a room, which always begins with a +.",
            "supported",
        ),
    ],
)
async def test_exchanged_roles_and_signs_refute(claim: str, source: str, stance: Stance) -> None:
    assert (await verified(claim, hit(source, title="Elves, rent"))).stance == stance


async def test_a_name_that_only_the_sentence_before_has_is_not_who_did_it() -> None:
    text = "Thanks to Ida Sole for creating the mast. The old Nord mast was taken from Tom Vass's yard."
    assert (await verified("The old Nord mast was created by Ida Sole.", hit(text))).stance != "supported"


async def test_a_name_with_another_number_is_another() -> None:
    claim = "Borealis 8 is on sale since the Molde 8.0 fair."
    assert (await verified(claim, hit("Borealis 7, on sale since the Molde 8.0 fair."))).stance != "supported"
    assert (await verified(claim, hit("Borealis 8, on sale since the Molde 8.0 fair."))).stance == "supported"


async def test_a_switch_that_is_off_by_default() -> None:
    text = "-o\n  Sort the nets by weight. By default off, if turned on it will sort the nets in the hold.\n"
    assert (await verified("Sorting the nets by weight is on by default.", hit(text))).stance == "refuted"


async def test_the_lines_of_a_table_in_columns_are_rows() -> None:
    text = (
        "Tool            Craft gained\n----------      ------------\n"
        "Marlinspike     Splicing\nSextant         Navigation\nAuger           Carpentry\n"
    )
    assert (await verified("The tool Sextant gives you the Navigation craft.", hit(text))).stance == "supported"
    assert (await verified("The tool Sextant gives you the Splicing craft.", hit(text))).stance != "supported"


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The reserve of £600 has been used.", "The reserve of £600 is untouched."),
        ("The reserve has been used.", "The reserve is unused."),
        ("The old pump is used up.", "The old pump is new."),
        ("One pilot is enough to open the lock.", "Two pilots are needed to open the lock."),
        ("One person can open the lock.", "Two people are needed to open the lock."),
        ("Two pilots are enough to open the lock.", "Two pilots are needed to open the lock."),
    ],
)
async def test_what_little_words_say_is_not_supported_by_another_state(claim: str, source: str) -> None:
    assert (await verified(claim, hit(source))).stance != "supported"


async def test_one_is_enough_where_a_single_one_can() -> None:
    verdict = await verified("One pilot is enough to open the lock.", hit("A single pilot can open the lock."))
    assert verdict.stance == "supported"


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (
            "Links are kept as links, and the tool does not follow them.",
            "Links are kept as links, the tool does not follow them.",
        ),
        (
            "Multiple include and exclude options of Sula take precedence in the order they are given.",
            "Multiple include and exclude options take precedence in the order they are given.",
        ),
        (
            "Full Sail is the highest speed that can be shown in Sula.",
            "Full Sail is the highest speed that can be shown, but if you find a tail wind, you can get still faster.",
        ),
        (
            "In Sula files, comments begin with # and extend to the end of the line.",
            "Comments begin with # and extend to the end of the line.",
        ),
    ],
)
async def test_a_claim_that_adds_only_what_stands_over_a_sentence_is_supported(claim: str, source: str) -> None:
    assert (await verified(claim, hit(source, title="Sula manual"))).stance == "supported"


async def test_no_heading_with_a_number_refutes_a_claim_about_a_number() -> None:
    text = "2. Leave\n\nFull-time staff receive 27 days of annual leave."
    verdict = await verified("Staff get 25 days of leave.", hit(text))
    assert [found.text for found in verdict.evidence if found.stance == "refuted"] == [text.split("\n")[2]]
