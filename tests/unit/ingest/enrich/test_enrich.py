from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ingest.enrich.texts import block_texts, document

from ragstone.core.documents import clean_metadata
from ragstone.core.types import Item
from ragstone.ingest.enrich.boilerplate import trim_boilerplate
from ragstone.ingest.enrich.near_duplicates import bands, signature, similarity
from ragstone.ingest.extract import normalize
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.prepare import enrich
from ragstone.settings.tree import EnrichSettings

EVERYTHING = EnrichSettings(keywords=50, entities=200)
FERRY = (
    "# The new ferry",
    "Kestrel Sound Ferries has bought a third ship. The ship was designed by Dr. Ingrid Solberg.",
    "The booking system of the ship stores every booking in PostgreSQL.",
)


def test_all_that_is_found() -> None:
    assert enrich(document(*FERRY, language="en"), EnrichSettings(keywords=3)) == {
        "keywords": ["Ferries", "ship", "booking"],
        "entities": {
            "people": ["Ingrid Solberg"],
            "organizations": ["Kestrel Sound Ferries"],
            "technologies": ["PostgreSQL"],
        },
        "content_type": "doc",
        "summary": FERRY[1],
    }


@pytest.mark.parametrize(
    ("key", "off"),
    [
        ("keywords", {"keywords": 0}),
        ("entities", {"entities": 0}),
        ("content_type", {"content_type": False}),
        ("summary", {"summary": "none"}),
        ("summary", {"summary": "llm"}),
    ],
)
def test_each_part_can_be_switched_off(key: str, off: dict[str, Any]) -> None:
    parsed = document(*FERRY, language="en")
    everything = enrich(parsed, EnrichSettings())
    assert enrich(parsed, EnrichSettings(**off)) == {name: everything[name] for name in everything if name != key}


@pytest.mark.req("R-NRM-06")
def test_a_content_type_that_is_known_is_not_guessed() -> None:
    assert "content_type" not in enrich(document(*FERRY, content_type="email"), EnrichSettings())


def test_what_is_not_found_has_no_key() -> None:
    assert enrich(document("?"), EnrichSettings(content_type=False, summary="none")) == {}


HOSTILE = {
    "one word": "x" * 100_000,
    "capitals": "Aa " * 33_000,
    "initials": "J. " * 33_000,
    "acronyms": "ABC protocol " * 10_000,
    "versions": "Ab 1.1.1.1.1.1 " * 7_000,
    "snakes": "a_" * 33_000,
    "humps": "aB" * 33_000,
    "stops": ". " * 33_000,
    "quotes": "'" * 33_000,
    "dashes": "-a" * 33_000,
    "brackets": "[1, " * 16_000,
    "parentheses": "f(" * 16_000,
    "addresses": "https://" * 10_000,
    "letters of names": "Université de " * 7_000,
    "marks": "e\u0301" * 16_000,
    "astral": "\U0001f6a2\U0001d400 " * 16_000,
    "surrogates": "\ud800\udc00 " * 1000,
    "cyrillic": "Ёж " * 16_000,
    "cookies": "we use " * 16_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_in_bounded_time_and_gives_metadata_that_can_be_stored(text: str) -> None:
    for parsed in (document(text), document(f"# {text[:5000]}", text[:5000], f"    {text}", title=text)):
        found = enrich(parsed, EVERYTHING)
        clean_metadata(found)
        assert trim_boilerplate(parsed) is parsed
        assert similarity(signature(text), signature(text)) in (0.0, 1.0)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_any_text_can_be_normalized_and_enriched(texts: list[str]) -> None:
    parts = ["visible", *(text for text in texts if text.strip())]
    item = Item("web", "1", "https://sound.example/1", b"", metadata={"source_type": "web"})
    normalized = normalize(item, document(*parts))
    assert broken_rules(normalized) == []
    clean_metadata({**normalized.metadata, **enrich(normalized, EVERYTHING)})
    signed = signature(normalized.text)
    assert len(bands(signed)) == (16 if signed else 0)


@given(st.lists(st.sampled_from(["Advertisement", "© 2026 Kestrel", "The ferry sails.", "# Heading"]), min_size=1))
@settings(max_examples=60, deadline=None)
def test_trimming_leaves_blocks_out_and_changes_nothing_else(parts: list[str]) -> None:
    parsed = document(*parts)
    trimmed = trim_boilerplate(parsed)
    assert broken_rules(trimmed) == []
    assert replace(trimmed, text=parsed.text, blocks=parsed.blocks) == parsed
    left = iter(block_texts(parsed))
    assert block_texts(trimmed)
    assert all(text in left for text in block_texts(trimmed))  # in order: a search goes on where the last ended
