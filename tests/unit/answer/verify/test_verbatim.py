from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

PREFETCH = "prefetch issues one read for all of them."


@pytest.mark.req("R-TOL-03")
@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (PREFETCH, f"There are two methods. {PREFETCH} It is the default."),
        ("Prefetch issues one read for all of them.", f"There are two methods. {PREFETCH}"),
        (
            "Only one module can hold the lock.",
            "Only one module can hold the *lock*. Only one thread can hold the key.",
        ),
        (
            "If the pump does not start within 9 seconds, it doesn't mean that the fuse is gone.",
            "If the pump does not start within 9 seconds, it doesn't mean that the fuse is gone.",
        ),
        ("The tank is never\nfilled before noon.", "Twice a day. The tank is never filled\nbefore noon."),
    ],
)
async def test_a_sentence_of_a_source_is_verified_wherever_it_begins(claim: str, text: str) -> None:
    assert (await verified(claim, hit(text))).status == "VERIFIED"


@pytest.mark.parametrize(
    "text",
    [
        "It is not true that the valve opens at 90 degrees.",
        "The valve opens at 90 degrees unless it is locked.",
        "Wrong: The valve opens at 90 degrees.",
        "Myths about valves:\n\n- The valve opens at 90 degrees.\n- The valve never rusts.",
        "It is often said that “The valve opens at 90 degrees.”",
        "The valve opens at 90 degrees. This is no longer so.",
        "The valve opens at 90 degrees. Not true: it opens at 70.",
        "# Common misconceptions\n\nThe valve opens at 90 degrees.",
    ],
)
async def test_a_sentence_that_its_source_takes_back_is_not_quoted_as_a_fact(text: str) -> None:
    assert (await verified("The valve opens at 90 degrees.", hit(text))).status != "VERIFIED"


async def test_another_document_that_says_otherwise_still_counts() -> None:
    claim = "The valve opens at 90 degrees."
    verdict = await verified(claim, hit(f"Two methods. {claim}"), hit("The valve opens at 70 degrees.", "d2"))
    assert (verdict.status, verdict.stance) == ("UNVERIFIED", "mixed")


ENTRIES = """\
-q, --quiet
  Suppress all messages of the compiler (optional).

-Q
  Print the version of the tool.

[c
  Jump backwards to the previous start of a change.

--color, --no-color
  Paint the words that were found.

DiffChange
  Changed lines.
"""


@pytest.mark.parametrize(
    ("claim", "is_verified"),
    [
        ("The -q option suppresses all messages of the compiler.", True),
        ("--quiet suppresses all messages of the compiler.", True),
        ("The -Q option suppresses all messages of the compiler.", False),
        ("-Q prints the version of the tool.", True),
        ("-q prints the version of the tool.", False),
        ("-Q does not print the version of the tool.", False),
        ("The command [c jumps backwards to the previous start of a change.", True),
        ("The command ]c jumps backwards to the previous start of a change.", False),
        ("--no-color paints the words that were found.", False),
        ("DiffChange is used for changed lines.", True),
        ("DiffDelete is used for changed lines.", False),
    ],
)
async def test_what_an_entry_says_of_its_term_is_verified_of_that_term_only(claim: str, is_verified: bool) -> None:
    assert ((await verified(claim, hit(ENTRIES))).status == "VERIFIED") == is_verified


async def test_a_text_made_of_the_beginning_of_a_claim_costs_no_more_than_its_length() -> None:
    claim = "a " * 900 + "b"
    assert (await verified(claim, hit("a " * 20_000))).status == "UNVERIFIED"
