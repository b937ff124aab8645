"""Defaults that stand in the term of an entry or in a line of their own."""

from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.core.answers import Stance

OPTIONS = (
    "Options of the ferry bell\n\n"
    "ring_pause\n  The pause, in seconds, between two strokes of the bell.\n\n  Default: 300\n\n"
    "ring_hidden\n  If enabled, the bell is not shown on the bridge.\n\n  Default: enabled\n\n"
    "--strokes=<number> [default: 30]\n  Most strokes of the bell that are counted in one hour of the night.\n"
    "  Counting more of them makes the bell slower and the log of the ferry longer."
)
SECTION = "## harbour-lamps\n\nDefault: `5`\n\nThe most lamps of the harbour that are lit at once."


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("The ring_pause is 300 seconds by default.", "supported"),
        ("The ring_pause is 120 seconds by default.", "refuted"),
        ("The ring_hidden option is disabled by default.", "refuted"),
        ("The --strokes option has a default of 30.", "supported"),
        ("The --strokes option has a default of 40.", "refuted"),
        ("At most 10 lamps of the harbour are lit at once by default.", "refuted"),
    ],
)
async def test_a_default_belongs_to_the_entry_or_section_that_it_stands_in(claim: str, stance: Stance) -> None:
    assert (await verified(claim, hit(OPTIONS), hit(SECTION, "d2"))).stance == stance


async def test_a_value_that_is_set_by_default_is_compared() -> None:
    text = "--chime=<no|yes> [default: yes]\n  Rings a chime before the bell of the ferry.\n  It is heard on the quay."
    assert (await verified("--chime is no by default.", hit(text))).stance == "refuted"
    assert (await verified("--chime is yes by default.", hit(text))).stance == "supported"


async def test_a_default_of_another_option_refutes_nothing() -> None:
    text = (
        "Bells of the ferry\n\n--pause=<number> [default: 300]\n  The pause between two strokes of the bell.\n"
        "  See --strokes."
    )
    verdict = await verified("The --strokes option of the bells of the ferry has a default of 30.", hit(text))
    assert verdict.stance == "unknown"
