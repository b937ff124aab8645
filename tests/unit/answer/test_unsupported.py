"""Statements of a model that alter what their passage says, and true ones in other words."""

from __future__ import annotations

import pytest

from ragstone.answer.check import find_objection
from ragstone.answer.reply import read_reply
from ragstone.answer.sanitize import find_foreign_words
from ragstone.language.sentences import sentence_spans

FLIGHT = (
    "Flight 417 left Denver at 9:40 a.m. with 82 passengers on board. "
    "The crew reported smoke in the cockpit while the aircraft was climbing from 11,000 feet to 24,000 feet. "
    "Captain Laura Mendes declared an emergency, and First Officer Paul Reyes contacted the controllers in Omaha. "
    "The aircraft landed safely in Omaha 27 minutes later, and nobody was injured. "
    "Investigators of the National Transport Board found that a worn bearing had overheated the fan. "
)
COMPANY = (
    "The Harrow Mining Company was founded in 1887 by two brothers, Thomas and Edwin Pell. "
    "In 1902 it sold its coal pits to Lambert & Sons for £240,000. "
    "Most of the debt was held by Carlton Bank, which later forgave a third of it. "
    "Edwin Pell retired in 1911, and his nephew Arthur Crane took over the management. "
    "The company may have employed more than 3,000 people at its peak. "
    "It was dissolved after the strike of 1926 because the owners refused to raise wages. "
)
TRIAL = (
    "Of the 1,246 patients who were enrolled, 628 received sorvastin and 618 received placebo. "
    "After 24 months, 9.4% of patients in the sorvastin group and 13.1% in the placebo group had died. "
    "Serious bleeding was more frequent with sorvastin than with placebo. "
    "Treatment did not reduce the rate of stroke. "
    "The trial was funded by the Heart Foundation and was led by Dr. "
    "Maria Holt of Aarhus University; Jens Lind analysed the data. "
)


def objection(statement: str, passage: str) -> str:
    return find_objection(statement, [passage[start:end] for start, end in sentence_spans(passage)], passage)


@pytest.mark.parametrize(
    ("passage", "statement"),
    [
        (FLIGHT, "Captain Laura Ortiz declared an emergency."),
        (FLIGHT, "First Officer Paul Reyes declared an emergency."),
        (FLIGHT, "Captain Laura Mendes contacted the controllers in Omaha."),
        (FLIGHT, "The crew reported smoke while the aircraft was descending from 11,000 feet to 24,000 feet."),
        (
            FLIGHT,
            "The crew reported smoke in the cockpit while the aircraft was climbing from 24,000 feet to 11,000 feet.",
        ),
        (FLIGHT, "Captain Laura Mendes, who was later jailed for fraud, declared an emergency."),
        (FLIGHT, "The aircraft landed safely in Omaha 27 minutes later, saving the airline millions."),
        (FLIGHT, "Nobody was injured, because the crew had trained for months."),
        (FLIGHT, "The aircraft landed in Omaha 37 minutes later."),
        (FLIGHT, "Flight 417 left Denver with 28 passengers on board."),
        (FLIGHT, "The aircraft was climbing from 11,000 metres to 24,000 metres."),
        (FLIGHT, "The aircraft did not land safely in Omaha."),
        (FLIGHT, "The aircraft landed safely in Denver 27 minutes later."),
        (FLIGHT, "Flight 417 left Omaha at 9:40 a.m. with 82 passengers on board."),
        (FLIGHT, "The fan overheated a worn bearing, investigators found."),
        (FLIGHT, "Flight 417 left Denver at 9:40 p.m. with 82 passengers."),
        (FLIGHT, "The crew reported smoke after the aircraft landed in Omaha."),
        (COMPANY, "Most of the debt was held by Morgan Bank."),
        (COMPANY, "Lambert & Sons sold its coal pits to the Harrow Mining Company."),
        (COMPANY, "In 1902 Lambert & Sons sold coal pits to the company for £240,000."),
        (COMPANY, "Arthur Crane retired in 1911, and Edwin Pell took over the management."),
        (COMPANY, "Most of the debt was held by Lambert & Sons."),
        (COMPANY, "The Harrow Mining Company was founded in 1878 by two brothers."),
        (COMPANY, "In 1911 it sold its coal pits to Lambert & Sons."),
        (COMPANY, "All of the debt was held by Carlton Bank."),
        (COMPANY, "The company employed more than 3,000 people at its peak."),
        (COMPANY, "The company may have employed fewer than 3,000 people at its peak."),
        (COMPANY, "The company was dissolved because the strike of 1926 had destroyed its pits."),
        (COMPANY, "The company was dissolved before the strike of 1926."),
        (COMPANY, "The owners agreed to raise wages."),
        (COMPANY, "Edwin Pell, a devout Quaker, retired in 1911."),
        (COMPANY, "In 1902 it sold its coal pits to Lambert & Sons for £240,000 (a record at the time)."),
        (COMPANY, "Carlton Bank later forgave half of the debt."),
        (COMPANY, "Arthur Crane was the brother of Edwin Pell."),
        (COMPANY, "Carlton Bank later doubled a third of it."),
        (TRIAL, "628 patients received placebo."),
        (TRIAL, "618 patients received sorvastin."),
        (TRIAL, "13.1% of patients in the sorvastin group had died after 24 months."),
        (TRIAL, "Serious bleeding was more frequent with placebo than with sorvastin."),
        (TRIAL, "Serious bleeding was less frequent with sorvastin than with placebo."),
        (TRIAL, "Treatment reduced the rate of stroke."),
        (TRIAL, "The trial was led by Jens Lind of Aarhus University."),
        (TRIAL, "The Heart Foundation was funded by the trial."),
        (TRIAL, "The trial was funded by the Lung Foundation."),
        (TRIAL, "After 24 weeks, 9.4% of patients in the sorvastin group had died."),
        (TRIAL, "Treatment did not reduce the rate of cancer."),
    ],
)
def test_an_altered_statement_is_not_supported(passage: str, statement: str) -> None:
    assert objection(statement, passage)


@pytest.mark.parametrize(
    ("passage", "statement"),
    [
        (FLIGHT, "An emergency was declared by Captain Laura Mendes."),
        (FLIGHT, "Paul Reyes got in touch with controllers in Omaha."),
        (FLIGHT, "With 82 passengers aboard, Flight 417 departed from Denver at 9:40 a.m."),
        (FLIGHT, "While the plane climbed from 11,000 to 24,000 feet, the crew reported smoke in the cockpit."),
        (FLIGHT, "No one was hurt, and the aircraft landed safely in Omaha 27 minutes later."),
        (FLIGHT, "The fan had been overheated by a worn bearing, according to the investigators."),
        (FLIGHT, "The National Transport Board's investigators discovered that a worn bearing had overheated the fan."),
        (COMPANY, "Two brothers, Thomas and Edwin Pell, founded the Harrow Mining Company in 1887."),
        (COMPANY, "Lambert & Sons bought the company's coal pits in 1902 for £240,000."),
        (COMPANY, "Carlton Bank held most of the debt and later forgave a third of it."),
        (COMPANY, "After Edwin Pell retired in 1911, his nephew Arthur Crane took over the management."),
        (COMPANY, "At its peak the company may have had more than 3,000 employees."),
        (COMPANY, "The company was dissolved following the 1926 strike because its owners would not raise wages."),
        (COMPANY, "Edwin Pell's nephew, Arthur Crane, took over management after Pell's retirement in 1911."),
        (COMPANY, "The coal pits were sold to Lambert & Sons in 1902 for £240,000."),
        (TRIAL, "Of 1,246 enrolled patients, 628 were given sorvastin and 618 were given placebo."),
        (TRIAL, "Serious bleeding occurred more often with sorvastin than with placebo."),
        (TRIAL, "The rate of stroke was not reduced by treatment."),
        (TRIAL, "Dr. Maria Holt of Aarhus University led the trial, which the Heart Foundation funded."),
        (TRIAL, "Data were analysed by Jens Lind."),
        (TRIAL, "At 24 months, 13.1% of the placebo group and 9.4% of the sorvastin group had died."),
        (TRIAL, "618 patients received placebo."),
    ],
)
def test_the_same_in_other_words_is_supported(passage: str, statement: str) -> None:
    assert objection(statement, passage) == ""


@pytest.mark.parametrize(
    "text",
    [
        r"The pump stops, see \\\\evil\share.",
        "The pump stops //evil/x.",
        "The pump stops (evil/leak?d=secret).",
        "The pump stops, ask bob@evil.",
        "The pump stops $(curl evil).",
        "The pump stops {{config}}.",
        "The pump stops ${jndi:x}.",
        "The pump stops; rm -rf it.",
        "The pump stops --exec.",
        "The pump stops %2e%2e.",
        "The pump stops javascript:alert.",
        "The pump stops, run curl evil.",
    ],
)
def test_words_of_addresses_commands_and_templates_must_be_in_the_passage(text: str) -> None:
    assert find_foreign_words(text, "The pump stops at 80 degrees.")
    assert not find_foreign_words(text, text)


@pytest.mark.parametrize(
    "text", ["It costs $5 (about 4%).", "It runs 24/7 and/or at 80 km/h.", "R&D rose; see the co-founder's note."]
)
def test_plain_prose_has_no_such_words(text: str) -> None:
    assert find_foreign_words(text, "R&D") == []


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1e", "\r"])
def test_a_line_separator_ends_a_sentence(separator: str) -> None:
    first, second = read_reply(f"The pump stops{separator}send it to evil [1].")
    assert (first.numbers, second.numbers) == ((), (1,))


def test_text_behind_a_mark_is_a_part_of_its_own() -> None:
    (sentence,) = read_reply("The pump stops [1] send it to evil")
    assert sentence.parts == ("The pump stops", "send it to evil")


@pytest.mark.parametrize(
    "statement",
    [
        'It is called "Northern Pell".',
        "Edwin Pell retired in 1902.",
        "Arthur Crane may or may not have taken over the management, whether or not Edwin Pell retired.",
        "In 1887 it sold its coal pits to Lambert & Sons.",
        "3,000 brothers founded the company.",
        "The company must have employed exactly 3,000 people.",
    ],
)
def test_quotes_dates_counts_and_certainty_stay_with_what_they_are_told_of(statement: str) -> None:
    assert objection(statement, COMPANY)


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("Two years passed, and 1500 developers kept packages.", "There were 1500 packages kept by 400 developers."),
        ("The manual was published in 1992.", "The manual was published in 1976, with revisions up to 1992."),
        ("The code was cut to 25% of its size.", "The code was cut in size by 25%."),
        ("It took several hundred nanoseconds.", "It took several hundred milliseconds."),
    ],
)
def test_a_number_is_bound_to_what_it_counts_and_to_the_word_before_it(statement: str, source: str) -> None:
    assert objection(statement, source)


def test_amounts_may_be_written_otherwise() -> None:
    assert objection("It cost about 1.9 billion US dollars.", "It cost about $1.9 billion.") == ""


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("The code was trimmed to 25% of its size.", "The code was trimmed in size by 25%."),
        ("Both sheep and goats have been sold.", "So far, only sheep have been sold."),
        ("The signal is weak whenever it rains.", "On days of rain the signal can be weak."),
        ("Each server can stand in at once.", "If none is left, one of them can stand in for all other hosts."),
        ("The design was replaced before it was criticized.", "In response to a critique, the design was replaced."),
    ],
)
def test_amount_extent_and_order_are_those_of_the_source(statement: str, source: str) -> None:
    assert find_objection(statement, [source], source)


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        (
            "The number of writes is reduced by the cache.",
            "The cache reduces the number of writes, because only the journal must be stored.",
        ),
        (
            "The server splits the data when it is larger than this size.",
            "If the data is larger than this size, the server, which handles the uploads, splits the data.",
        ),
        ("The cleaner is fast.", "The cleaner runs fast while providing the best use of the disk."),
        (
            "The new mode is meant as a replacement for the old driver.",
            "The new mode is intended to replace the old driver.",
        ),
        ("The number of users almost doubled.", "The number of users nearly doubled."),
    ],
)
def test_what_limits_another_part_of_a_sentence_does_not_limit_a_statement(statement: str, source: str) -> None:
    assert find_objection(statement, [source], source) == ""
