"""Nothing found is a result; nothing searched is an error."""

from __future__ import annotations

import pytest

from ragstone.core.errors import SearchFailed
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import SearchResult
from ragstone.query.context import Arm, require_an_answer

DENSE, LEXICAL = "dense: the store is away", "lexical: out of time"


def result(*degraded: str) -> SearchResult:
    return SearchResult("dogs", "dogs", "balanced", (), (), degraded, 1.0)


@pytest.mark.parametrize(
    ("arms", "degraded", "message", "instead"),
    [
        ("dense", (DENSE,), "the store is away", {"arms": "lexical"}),
        ("dense", ("rerank: out of time", DENSE), "the store is away", {"arms": "lexical"}),
        ("lexical", (LEXICAL,), "out of time", {"arms": "dense"}),
        ("hybrid", (DENSE, LEXICAL), "the store is away", {}),
    ],
)
def test_no_arm_that_was_asked_could_be_searched(
    arms: Arm, degraded: tuple[str, ...], message: str, instead: dict[str, str]
) -> None:
    with pytest.raises(SearchFailed, match=f"could not be done: {message}") as failed:
        require_an_answer(arms, result(*degraded))
    assert failed.value.remedy == Remedy(Action.CHECK_STORES, **instead)
    assert failed.value.retryable


@pytest.mark.parametrize(
    ("arms", "degraded"),
    [("dense", ()), ("hybrid", (DENSE,)), ("hybrid", (LEXICAL,)), ("lexical", ("rerank: out of time",))],
)
def test_an_arm_that_found_nothing_has_answered(arms: Arm, degraded: tuple[str, ...]) -> None:
    found = result(*degraded)
    assert require_an_answer(arms, found) is found


def test_passages_that_could_not_be_read_are_not_nothing() -> None:
    with pytest.raises(SearchFailed, match="passages were found and could not be read: out of time"):
        require_an_answer("hybrid", result("read_back: out of time"))
