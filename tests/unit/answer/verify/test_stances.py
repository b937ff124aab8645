from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.answer.verify.split import name_pronouns, split_claim
from ragstone.answer.verify.statements import find_evidence
from ragstone.answer.verify.subject import drop_topic
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


@pytest.mark.parametrize(
    ("claim", "parts"),
    [
        (
            "Sula verifies what passes its lock, and it drops old logs.",
            ["Sula verifies what passes its lock", "Sula drops"],
        ),
        ("The key is a word that opens it, and the lock is one that shuts it.", ["The key is", "the lock is one"]),
        ("Two ships came from Oslo, and each of them had its own pilot.", ["Two ships came", "each of Two ships had"]),
        ("They say that the pump runs, and the valve opens.", ["They say that the pump runs, and the valve opens."]),
        ("If the pump runs, and it is dry, the valve opens.", ["If the pump runs, and it is dry, the valve opens."]),
    ],
)
def test_what_stands_behind_a_comma_with_a_subject_of_its_own_is_a_part(claim: str, parts: list[str]) -> None:
    found = name_pronouns(split_claim(claim))
    assert len(found) == len(parts)
    assert all(one.startswith(start) for one, start in zip(found, parts, strict=True))


SWEEP = (
    "For all removals, two commands need to be called in sequence: drop to remove crates, and sweep to remove the "
    "remaining ropes that held only the removed crates. The sweep option of drop runs sweep if any crates were removed."
)


@pytest.mark.parametrize(
    ("claim", "source", "stance"),
    [
        (
            "In Sula, sweep removes crates and drop removes the remaining ropes that held only the removed crates.",
            SWEEP,
            "refuted",
        ),
        (
            "The gate must be 3 metres wide.",
            "The gate must be 3 metres wide, otherwise the lorry gets stuck.",
            "supported",
        ),
        (
            "The gate is 3 metres wide.",
            "If ice forms, the gate is 5 metres wide, otherwise it is 3 metres wide.",
            "unknown",
        ),
    ],
)
async def test_a_compound_claim_is_read_whole_and_in_parts(claim: str, source: str, stance: Stance) -> None:
    assert (await verified(claim, hit(source, title="Sula"))).stance == stance


def test_the_name_of_what_a_page_is_about_says_nothing_more() -> None:
    titles = "Orrery manual\norrery faq txt"
    assert drop_topic("In Orrery, more cranes use more fuel.", "More cranes use more fuel.", titles) == (
        "more cranes use more fuel."
    )
    assert drop_topic("More cranes in Orrery use fuel.", "Cranes use fuel.", titles) == "More cranes use fuel."
    assert drop_topic("Orrery's cranes use fuel.", "Cranes use fuel.", titles) == "the cranes use fuel."
    for claim in ("In Sula, cranes use fuel.", "In Orrery 4, cranes use fuel.", "The crane of Orrery uses fuel."):
        assert drop_topic(claim, "Cranes use fuel.", titles) == claim
    assert drop_topic("In Orrery, cranes lift.", "Cranes of Orrery lift.", titles) == "In Orrery, cranes lift."


async def test_what_a_page_is_about_hides_no_opposite() -> None:
    source = hit("Adding cranes also increases fuel usage.", title="Orrery", uri="orrery/cranes.md")
    assert (await verified("Adding cranes in Orrery reduces fuel usage.", source)).stance == "refuted"
    assert (await verified("Adding cranes in Orrery increases fuel usage.", source)).stance == "supported"


CODES = (
    "Exit code 0: All lamps were lit\nExit code 1: Some of the lamps did not light\n"
    "Exit code 2: Lighting was interrupted by the keeper\nExit code 3: No lamps were found"
)


async def test_lines_with_a_label_are_read_one_by_one() -> None:
    assert [unit.text for unit in find_evidence([hit(CODES)])] == CODES.split("\n")
    assert (await verified("Exit code 2 means that lighting was interrupted by the keeper.", hit(CODES))).stance == (
        "supported"
    )
    assert (await verified("Exit code 3 means that lighting was interrupted by the keeper.", hit(CODES))).stance != (
        "supported"
    )


async def test_no_under_a_question_denies_what_was_asked() -> None:
    asked = hit("**5.2 Is Orrery certified for harbours?**\n\nNo. But that says more of harbours than of Orrery.")
    assert (await verified("Orrery is certified for harbours.", asked)).stance == "refuted"
    assert (await verified("Orrery is not certified for harbours.", asked)).stance != "refuted"


async def test_words_in_brackets_may_be_left_out() -> None:
    source = hit("C-a W\t\t(width)\t\tToggle between 80 & 132 columns mode.", title="Sula")
    assert (await verified("C-a W in Sula toggles between 80 and 132 columns mode.", source)).stance == "supported"


async def test_a_label_in_capitals_is_no_part_of_a_sentence() -> None:
    text = "The pilot reads this.\n\nTHE BELL IS NOT THE HORN: The bell of the ferry is not used in fog at night."
    assert (await verified("The bell of the ferry is not used in fog at night.", hit(text))).status == "VERIFIED"
    myth = "MYTH: The bell of the ferry is used in fog at night."
    assert (await verified("The bell of the ferry is used in fog at night.", hit(myth))).status == "UNVERIFIED"


async def test_a_warning_that_begins_with_dont_calls_nothing_false() -> None:
    text = '### Bells?\n\n!!! warning "Don\'t Over-Ring"\n\n    Ring bells. The ferry needs only **four bells** in fog.'
    assert (await verified("The ferry needs only four bells in fog.", hit(text))).status == "VERIFIED"
    wrong = hit("Don't:\n\n- Ring the four bells in fog.")
    assert (await verified("Ring the four bells in fog.", wrong)).status == "UNVERIFIED"


async def test_the_year_over_a_chronicle_is_that_of_its_months() -> None:
    text = "2016\n====\n\nJanuary: the ferry runs on gas\n\nMay: the pier was rebuilt in stone"
    claim = "In May {} the pier was rebuilt in stone."
    assert (await verified(claim.format(2016), replace(hit(text), section="2016"))).stance == "supported"
    assert (await verified(claim.format(2015), replace(hit(text), section="2016"))).stance != "supported"


async def test_a_row_says_of_what_its_page_is_about_what_its_cells_say() -> None:
    text = "| Part | Layer | Format |\n| --- | --- | --- |\n| Server | Storage | iCal |\n| Client | Screen | HTML |"
    found = hit(text, uri="orrery/overview.md")
    assert (await verified("In Orrery, the format of the server storage is iCal.", found)).stance == "supported"
    assert (await verified("In Orrery, the format of the server storage is HTML.", found)).stance != "supported"


async def test_a_default_that_holds_if_an_option_is_not_used_denies_nothing() -> None:
    text = "If this option is not used, then by default messages of the ferry are sent to the harbour office."
    claim = "Messages of the ferry are sent to the harbour office by default."
    assert (await verified(claim, hit(text))).stance == "supported"
