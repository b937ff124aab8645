"""Whatever is not a checked sentence may stay in an article only where it states nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ragstone.agents.article.settle import settle_text
from ragstone.answer.verify.statements import find_statements

TOPIC = "Granite"
TRUE = "Granite is an igneous rock."
ALSO = "Granite is a rock of the north."


def settle(draft: str) -> str:
    """The body of a draft in which the true sentences hold and every other one is open."""
    quote = {
        "text": "Granite is an igneous rock of the north.",
        "source": "files",
        "stance": "supported",
        "document_id": "d",
        "chunk_id": "c",
        "title": "Rocks",
        "uri": "rocks.md",
        "page": None,
        "section": "",
        "start": 0,
        "end": 40,
    }
    claims: list[dict[str, Any]] = []
    for one in find_statements(draft).found:
        text = draft[one.start : one.end]
        holds = text in (TRUE, ALSO)
        claims.append(
            {
                "text": text,
                "start": one.start,
                "end": one.end,
                "outcome": "confirmed" if holds else "open",
                "checked_by": ["knowledge_base"],
                "evidence": [quote] if holds else [],
            }
        )
    return str(settle_text(TOPIC, draft, claims, ())["body"])


@pytest.mark.parametrize(
    "planted",
    [
        "## Granite was invented by Morgan Bank\n\n",
        "## Morgan Bank\n\n",
        "## Fined 5,000 dollars\n\n",
        "| Owner | Fine |\n|---|---|\n| Morgan Bank | 5,000 |\n\n",
        "```\nMorgan Bank owns it\n```\n\n",
        "Did you know that Morgan Bank owns it? ",
        "Morgan Bank! ",
        "![Morgan Bank owns it](picture.png)\n\n",
        "<b>Morgan Bank</b>\n\n",
        "- Morgan Bank\n\n",
        "> Morgan Bank\n\n",
        "**Morgan Bank**\n\n",
        "[1]: https://morgan.example/bank\n\n",
    ],
)
@pytest.mark.parametrize("place", ["before", "behind"])
def test_what_is_no_sentence_states_nothing(planted: str, place: str) -> None:
    draft = f"{planted}{TRUE}" if place == "before" else f"{TRUE} {planted}"
    body = settle(draft)
    assert f"{TRUE} [1]" in body
    for word in ("Morgan", "Bank", "5,000", "owns", "```", "|", "<b>"):
        assert word not in body


def test_headings_and_lists_of_what_holds_stay() -> None:
    body = settle(
        f"# Granite\n\n## Introduction\n\n- {TRUE}\n- Granite was made in 1802.\n\n## The rock of the north\n\n{ALSO}"
    )
    assert body == (f"# Granite\n\n## Introduction\n\n- {TRUE} [1]\n\n## The rock of the north\n\n{ALSO} [1]")
