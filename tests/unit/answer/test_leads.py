from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.complete import complete_units
from ragstone.answer.extract import Extractor, find_candidates
from ragstone.answer.quotes import Quote
from ragstone.answer.units import find_units
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]
FIRST = "The booking call holds places for fifteen minutes."
LEANING = "After that they are released unless the booking has been paid."


def quotes_of(*hits: Hit) -> list[Quote]:
    return find_candidates(hits, addresses=True)


def say(hit: Hit, words: str, most: int = 4) -> list[str]:
    """The statements of the unit that begins with the words."""
    units = find_units([hit], addresses=True)
    chosen = [unit for unit in units if unit.text.startswith(words) and unit.kind != "list"]
    return [statement.text for statement in complete_units(chosen[:1], units, most)]


LONG = "Nothing about this is of any use to those who are not here for the tickets of the day, "
PADDING = f"{LONG}{LONG}{LONG}{LONG}so much is sure."


@pytest.mark.parametrize(
    "leaning",
    [
        LEANING,
        "They are released unless the booking has been paid.",
        "It is paid by card or in cash.",
        "This keeps the places free for others.",
        "Otherwise the places are given to others.",
        "Because of this the places are free again.",
        "Both are printed on the ticket you get.",
        "Use this if the booking is paid.",
        "The former are printed on the ticket.",
    ],
)
@pytest.mark.parametrize("gap", [" ", "\n", "  \n", "\n\n"])
def test_a_sentence_that_leans_on_the_one_before_brings_it_along(make_hit: MakeHit, leaning: str, gap: str) -> None:
    assert say(make_hit(f"{FIRST}{gap}{leaning}"), leaning) == [FIRST, leaning]


@pytest.mark.parametrize(
    "independent",
    [
        "Places are released unless the booking has been paid.",
        "Italian visitors pay in the same way.",
        "After nine o'clock the office is closed.",
        "Thousands of places are released every day.",
    ],
)
def test_a_sentence_that_stands_by_itself_brings_no_other_paragraph(make_hit: MakeHit, independent: str) -> None:
    assert say(make_hit(f"{FIRST}\n\n{independent}"), independent) == [independent]


def test_there_are_never_more_than_max_sentences(make_hit: MakeHit) -> None:
    hits = [make_hit(FIRST, "a"), make_hit("Dogs travel for two crowns.", "dogs")]
    units = find_units(hits, addresses=True)
    assert [said.text for said in complete_units(units, units, 1)] == [FIRST]
    assert len(complete_units(units, units, 2)) == 2


@pytest.mark.parametrize("gap", ["\n\n## Payment of places\n\n", "\n\n| a | b | c | d |\n\n"])
def test_a_lead_does_not_come_from_another_section(make_hit: MakeHit, gap: str) -> None:
    assert FIRST not in " ".join(say(make_hit(f"{FIRST}{gap}{LEANING}"), LEANING))


def test_a_heading_comes_with_a_sentence_that_leans_on_it(make_hit: MakeHit) -> None:
    text = "Trains ran.\n\n## Night trains\n\nThese are run by the state railway."
    assert say(make_hit(text), "These") == ["Night trains\n\nThese are run by the state railway."]


def test_a_lead_does_not_come_from_another_hit(make_hit: MakeHit) -> None:
    hits = [make_hit(FIRST), make_hit(LEANING, start=len(FIRST) + 1)]
    units = find_units(hits, addresses=True)
    assert [said.text for said in complete_units(units[1:], units, 4)] == [LEANING]


def test_what_lies_between_two_quotes_of_a_paragraph_is_not_left_out(make_hit: MakeHit) -> None:
    text = f"{PADDING} {FIRST} Is that fair? Dogs go free of charge. {PADDING}"
    units = find_units([make_hit(text)], addresses=True)
    chosen = [unit for unit in units if unit.text in (FIRST, "Dogs go free of charge.")]
    assert [said.text for said in complete_units(chosen, units, 4)] == [
        f"{FIRST} Is that fair? Dogs go free of charge."
    ]


LIST = "You can claim it in two ways:\n\n- Open the page called Orders\n- Type the claim command there\n\nNothing else."


def test_a_sentence_that_announces_a_list_brings_its_items(make_hit: MakeHit) -> None:
    assert say(make_hit(LIST), "You can") == [LIST.removesuffix("\n\nNothing else.")]


def test_an_item_brings_the_sentence_that_announces_its_list(make_hit: MakeHit) -> None:
    announced = "You can claim it in two ways:"
    assert say(make_hit(LIST), "Open the") == [f"{announced}\n\n- Open the page called Orders"]
    assert say(make_hit(LIST), "Type the") == [announced, "Type the claim command there"]


def test_code_brings_the_sentence_that_announces_it(make_hit: MakeHit) -> None:
    text = "To stop it, run this:\n\n```sh\npumpctl stop --now\n```\n\nIt stops."
    assert say(make_hit(text), "pumpctl") == ["To stop it, run this:", "pumpctl stop --now"]
    assert say(make_hit(text), "To stop") == ["To stop it, run this:", "pumpctl stop --now"]


ENTRIES = """\
pump_timeout (integer)
  Sets how long the pump may run dry before it is switched off by the controller of the plant. The pump is checked every
  second for that, which costs little, and what is found goes to the log of the plant as well, where it stays for
  a year or until the next inspection of the plant. The default is five minutes.
  fan_speed (integer)
  Turns of the fan."""


def test_a_sentence_of_a_long_entry_brings_its_term(make_hit: MakeHit) -> None:
    said = " ".join(say(make_hit(ENTRIES), "The default"))
    assert said.startswith("pump_timeout (integer)")
    assert said.endswith("The default is five minutes.")


def test_a_short_entry_is_one_quote(make_hit: MakeHit) -> None:
    assert say(make_hit(ENTRIES), "fan_speed") == ["fan_speed (integer)\n  Turns of the fan."]


OPTIONS = """\
The options are as follows.

- --no-data, -d

Do not write any rows of the tables.

- --no-defaults

Read no file of options."""
FUNCTIONS = """\
`COOKIE_JAR`

Tell the library to turn its engine for cookies on, and when the handle is
  closed save all cookies to the file.

`COOKIE_LIST`

Take a cookie from the list."""


@pytest.mark.parametrize(
    ("text", "words", "whole"),
    [
        (OPTIONS, "--no-data", "--no-data, -d\n\nDo not write any rows of the tables."),
        (FUNCTIONS, "`COOKIE_JAR", FUNCTIONS.partition("\n\n`COOKIE_LIST")[0]),
    ],
)
def test_a_name_on_a_line_of_its_own_is_the_term_of_the_next_paragraph(
    make_hit: MakeHit, text: str, words: str, whole: str
) -> None:
    assert say(make_hit(text), words) == [whole]


VALUES = """\
The command displays the following values:

- Uptime

The number of seconds that the server has been running.

- Slow queries

The number of queries that took long.

"""


def test_a_label_behind_a_mark_is_the_term_of_the_next_paragraph(make_hit: MakeHit) -> None:
    slow = "Slow queries\n\nThe number of queries that took long."
    assert [quote.text for quote in quotes_of(make_hit(VALUES))][-1] == slow
    single = "- Uptime\n\nThe number of seconds that the server has been running."
    assert say(make_hit(single), "The number") == [single.partition("\n\n")[2]]


CHECKS = """\
Supported types of checks:

none
  Calculate nothing at all.

crc32
  Calculate the sum over 32 bits.

Other types are not supported."""


def test_entries_come_with_the_sentence_that_announces_them(make_hit: MakeHit) -> None:
    whole = CHECKS.partition("\n\nOther")[0]
    assert whole in [quote.text for quote in quotes_of(make_hit(CHECKS))]
    assert whole not in [quote.text for quote in quotes_of(make_hit(CHECKS.replace("checks:", "checks.")))]


def test_a_list_of_entries_that_is_too_long_ends_behind_what_is_said_of_a_term(make_hit: MakeHit) -> None:
    whole = CHECKS.partition("\n\nOther")[0]
    long = f"{whole}\n\nsha256\n  {'Calculate the longer sum. ' * 50}"
    assert whole in [quote.text for quote in quotes_of(make_hit(long))]


@pytest.mark.parametrize("heading", ["## `auto-reload`", "#### cache_expiry", "--dead-time"])
def test_a_heading_that_is_a_name_is_the_term_of_what_stands_under_it(make_hit: MakeHit, heading: str) -> None:
    name = heading.lstrip("# ")
    hit = make_hit(f"{heading}\n\nDefault: `60`\n\nSet this to another value to wait longer.\n\n{PADDING}")
    assert [text.split("\n")[0] for text in say(hit, "Set this")] == [name]
    assert say(hit, "Default") == [f"{name}\n\nDefault: `60`"]


@pytest.mark.parametrize("heading", ["## Reloading", "# hours", "# refunds.md"])
def test_a_heading_of_words_or_a_file_is_no_term(make_hit: MakeHit, heading: str) -> None:
    hit = make_hit(f"{heading}\n\nThe page is loaded again when a file changes.")
    assert say(hit, "The page") == ["The page is loaded again when a file changes."]


def test_the_letter_o_marks_an_item_of_plain_text(make_hit: MakeHit) -> None:
    [whole] = say(make_hit("You need the following:\n\no an old clock\n\no a kernel with support"), "You need")
    assert whole == "You need the following:\n\no an old clock\n\no a kernel with support"


def test_a_list_of_questions_is_a_table_of_contents(make_hit: MakeHit) -> None:
    assert quotes_of(make_hit("- What is the old clock?\n- Must it be disabled?\n- Why do I get a message?")) == []


def test_steps_that_are_numbered_without_a_gap_are_items(make_hit: MakeHit) -> None:
    text = "Use the following procedure:\n\n1.Stop the thread.\n\n2.Start the server.\n\nThat is all of it."
    assert say(make_hit(text), "Use the") == [text.partition("\n\nThat")[0]]


def test_an_item_that_says_something_is_no_term(make_hit: MakeHit) -> None:
    assert say(make_hit(LIST), "Nothing") == []
    assert say(make_hit("- Open the page called Orders\n\nNothing else is to be done."), "Nothing") == [
        "Nothing else is to be done."
    ]


def test_comments_of_a_file_of_settings_are_no_headings(make_hit: MakeHit) -> None:
    text = "# The cycle is 20 minutes long.\n# The first signal comes after 30 seconds.\n# Tune it to your needs.\n"
    assert say(make_hit(text), "The first") == ["The first signal comes after 30 seconds."]
    assert say(make_hit("# The first signal of all\n## The next signal of all\nIt comes."), "The") == []


@pytest.mark.parametrize(
    "answer", ["A:  xz -dc foo.tar.xz | tar xf -", "> make all of it now", "June: the site moves to another host"]
)
def test_an_answer_or_a_command_on_a_line_of_its_own_is_no_heading(make_hit: MakeHit, answer: str) -> None:
    hit = make_hit(f"How do I unpack it with the tar that I have?\n\n{answer}\n\nThe rest is told elsewhere.")
    assert answer.removeprefix("> ") in [quote.text for quote in quotes_of(hit)]


async def test_an_answer_tells_the_lead_first(make_hit: MakeHit, embedder: Embedder) -> None:
    question = "Are places released unless the booking has been paid?"
    extraction = await Extractor(embedder).extract(question, [make_hit(f"{FIRST} {LEANING}")], max_sentences=4)
    assert [statement.text for statement in extraction.statements] == [FIRST, LEANING]
    for statement in extraction.statements:
        assert statement.text == statement.quotes[0].text


@pytest.mark.parametrize(
    "facts",
    [
        {"title": "Where the small boat leaves"},
        {"section": "Where the small boat leaves"},
        {"section": "Timetable > Where the small boat leaves"},
        {"section": "Where the small boat leaves > In winter"},
    ],
)
def test_a_heading_without_marks_is_not_quoted(make_hit: MakeHit, facts: dict[str, str]) -> None:
    hit = make_hit("Where the small boat leaves\n\nThe small boat leaves from the east pier.", **facts)
    assert [quote.text for quote in quotes_of(hit)] == ["The small boat leaves from the east pier."]


def test_a_sentence_that_only_contains_the_title_is_quoted(make_hit: MakeHit) -> None:
    hit = make_hit("The small boat leaves from the east pier.", title="The small boat", section="")
    assert [quote.text for quote in quotes_of(hit)] == ["The small boat leaves from the east pier."]


LEASE = (
    "between Hansen Ltd (the Landlord) and Ada Holm (the Tenant)\n\n"
    "1. Term. The lease begins on 1 October. Either party may end it with three months' notice.\n\n"
    "2. Rent. The rent is 840 euros. It is due on the third working day.\n\n"
    "3. Pets. Cats are allowed. Dogs need the consent of the Landlord.\n"
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("When does the lease begin?", "Term. The lease begins on 1 October. Either party may end it"),
        ("How much is the rent?", "Rent. The rent is 840 euros."),
        ("Are dogs allowed?", "Pets. Cats are allowed."),
    ],
)
async def test_one_clause_of_a_contract_is_quoted_by_itself(
    embedder: Embedder, make_hit: MakeHit, question: str, said: str
) -> None:
    found = await Extractor(embedder).extract(question, [make_hit(LEASE)], max_sentences=4)
    assert [statement.text[: len(said)] for statement in (*found.statements, *found.nearest)] == [said]
