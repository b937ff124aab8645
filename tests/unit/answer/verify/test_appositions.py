from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import hit, verified

from ragstone.answer.verify.appositions import is_role_of_another, is_stated_in_passing
from ragstone.answer.verify.support import find_unsupported


@pytest.mark.parametrize(
    "sentence",
    [
        "Write to your manager or, if it is about your manager, to Ida Sole, Head of Port.",
        "Ask Ida Sole (Head of Port).",
        "The Head of Port, Ida Sole, keeps the key.",
        "Head of Port: Ida Sole",
        "Our Head of Port, Dr Ida Sole, may be away.",
    ],
)
async def test_who_holds_an_office_is_said_in_passing(sentence: str) -> None:
    for claim in ("Ida Sole is Head of Port.", "The Head of Port is Ida Sole."):
        assert is_stated_in_passing(claim, sentence)
        assert find_unsupported(claim, [sentence], sentence) == []
    assert (await verified("Ida Sole is Head of Port.", hit(sentence))).status == "VERIFIED"


@pytest.mark.parametrize(
    ("sentence", "of_another"),
    [
        ("The Deputy Head of Port, Ida Sole, keeps the key.", True),
        ("Ida Sole, Head of Port Security, keeps the key.", True),
        ("Max Rehn, Head of Port, Ida Sole, pilot, and others came.", True),
        ("Ida Sole reports to Max Rehn, Head of Port.", True),
        ("Ida Sole reports to Max Rehn, who is Head of Port.", True),
        ("Ida Sole met the Head of Port.", True),
        ("The key is with Max Rehn, the Head of Port.", True),
        ("According to Ida Sole, the Head of Port left.", True),
        ("When he met the Head of Port, Ida Sole left.", True),
        ("Candidates for Head of Port: Ida Sole, Max Rehn.", True),
        ("We told Head of Port Ida Sole.", False),
        ("Ida Sole, formerly Head of Port, left.", False),
        ("Ida Sole, who came in 2019, is Head of Port.", False),
        ("Ida Sole was appointed Head of Port in 2019.", False),
        ("Ida Sole, like Max Rehn, is Head of Port.", False),
    ],
)
def test_an_office_belongs_to_the_name_beside_it(sentence: str, of_another: bool) -> None:
    assert not is_stated_in_passing("Ida Sole is Head of Port.", sentence)
    assert is_role_of_another("Ida Sole is Head of Port.", [sentence]) is of_another
