from __future__ import annotations

import pytest
from tests.unit.ingest.enrich.texts import document

from ragstone.core.types import Parsed
from ragstone.ingest.enrich.describe import classify, read_excerpt, weigh_cues

TUTORIAL = document(
    "# Getting started",
    "In this guide you will learn to book a crossing.",
    "Open the booking page.",
    "    ragstone ingest timetable.md",
)
NEWS = document(
    "PORT ARDEN, March 3 — The ferry line announced on Tuesday that it will buy a third ship.",
    "“We have waited for years,” said the harbour master.",
)
PAPER = document(
    "# Abstract",
    "In this paper we show that tides delay ferries.",
    "# 1. Introduction",
    "Earlier work by Lund et al. found the same [3, 7].",
    "# References",
)
REFERENCE = document("# Booking API reference", "# Parameters", "The port defaults to Arden and is required.")
PLAIN = document("# About the line", "The line links four islands. It has three ships.")
CODE = document("    def stop():\n        return None", "    stop()")
TABLE = document("# Fares", "| from | to | fare |\n| Arden | Sula | 12 |\n| Arden | Hennay | 14 |")


@pytest.mark.req("R-NRM-06")
@pytest.mark.parametrize(
    ("parsed", "kind"),
    [
        (TUTORIAL, "tutorial"),
        (NEWS, "news"),
        (PAPER, "paper"),
        (REFERENCE, "reference"),
        (PLAIN, "doc"),
        (CODE, "code"),
        (TABLE, "reference"),
        (document("Hello.", media_type="message/rfc822"), "email"),
        (document("import this", media_type="text/x-python"), "code"),
        (document("Paso a paso", "# Primeros pasos"), "tutorial"),
        (document("# Erste Schritte", "Die Fähre kommt."), "tutorial"),
        (document("..."), "doc"),
    ],
)
def test_kinds(parsed: Parsed, kind: str) -> None:
    assert classify(parsed, read_excerpt(parsed)) == kind


def test_one_cue_is_not_enough() -> None:
    parsed = document("The master said that the ferry is late.")
    assert weigh_cues(parsed, read_excerpt(parsed)) == {"news": 0.5}
    assert classify(parsed, read_excerpt(parsed)) == "doc"


def test_a_cue_on_every_line_counts_four_times() -> None:
    parsed = document(*["The master said that the ferry is late."] * 50)
    assert weigh_cues(parsed, read_excerpt(parsed)) == {"news": 2.0}


def test_a_feed_speaks_for_news_and_code_for_a_tutorial() -> None:
    assert weigh_cues(PLAIN, read_excerpt(PLAIN)) == {}
    fed = document("The line links four islands.", source_type="rss")
    assert weigh_cues(fed, read_excerpt(fed)) == {"news": 1}
    without_code = document("# Getting started", "In this guide you will learn to book a crossing.", "Open it.")
    with_code = weigh_cues(TUTORIAL, read_excerpt(TUTORIAL))["tutorial"]
    assert with_code == weigh_cues(without_code, read_excerpt(without_code))["tutorial"] + 1
