from __future__ import annotations

import pytest

from ragstone.query.kind import asks_for_names

NAMES = [
    "moduleControllerCreate",
    "`moduleControllerCreate`",
    "hook.player.connected",
    "SKU-12345",
    "snake_case_name",
    "UPPER_CASE",
    "ModuleController",
    "HTTPServer",
    "@takaro/helpers",
    "Type::method",
    "v2 iso9001",
    "getPlayer, banPlayer?",
]
QUESTIONS = [
    "",
    "how do cronjobs work",
    "ferry",
    "well-known follow-up",
    "moduleControllerCreate example",
    "2026",
    "What does hook.player.connected do?",
    "Kestrel Sound",
    "NATO",
    "e-mail",
]


@pytest.mark.parametrize("query", NAMES)
def test_a_query_of_names_is_recognised(query: str) -> None:
    assert asks_for_names(query)


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_question_is_not_a_name(query: str) -> None:
    assert not asks_for_names(query)
