from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.text.structured import parse_json


def shape(parsed: Parsed) -> list[tuple[str, str]]:
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


def test_a_document_has_a_title_a_text_fields_and_records() -> None:
    content = {
        "title": "Ferries",
        "body": "First.\n\nSecond.",
        "year": 2026,
        "place": {"town": "Sula", "position": {"lat": 61.10}},
        "tags": ["sea", "winter"],
        "open": True,
        "closed": None,
        "crossings": [{"name": "North", "minutes": 25}, {"name": "South", "stops": [{"at": "Pier"}]}],
    }
    parsed = parse_json(json.dumps(content).encode(), "a.json")
    assert parsed.title == "Ferries"
    assert shape(parsed) == [
        ("heading", "Ferries"),
        ("paragraph", "year: 2026\nplace.town: Sula\nplace.position.lat: 61.1\ntags: sea, winter\nopen: true"),
        ("paragraph", "First."),
        ("paragraph", "Second."),
        ("heading", "crossings"),
        ("paragraph", "North\nminutes: 25"),
        ("paragraph", "South\nstops.1.at: Pier"),
    ]
    assert broken_rules(parsed) == []


def test_a_list_of_records_is_one_block_each() -> None:
    parsed = parse_json(b'[{"text": "One.", "id": 1}, {"text": "Two.", "id": 2}]', "a.json")
    assert shape(parsed) == [("paragraph", "One.\nid: 1"), ("paragraph", "Two.\nid: 2")]


def test_lines_are_one_block_each_and_broken_ones_are_named() -> None:
    parsed = parse_json(b'{"title": "A", "n": 1}\n\n{"title": \n["x", "y"]\n' + b"[" * 100_000, "a.jsonl")
    assert shape(parsed) == [("paragraph", "A\nn: 1"), ("paragraph", "x, y")]
    assert parsed.warnings == ("2 lines cannot be read as JSON and were left out: 3, 5",)
    assert parsed.media_type == "application/x-ndjson"


def test_numbers_stay_as_they_were_written() -> None:
    digits = "9" * 10_000
    parsed = parse_json(f'{{"price": 12.50, "huge": {digits}, "odd": NaN}}'.encode(), "a.json")
    assert parsed.text == f"price: 12.50\nhuge: {digits}\nodd: NaN"


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"{", ParseError, "a.json is not valid JSON"),
        (b"{}", EmptyDocument, "no text was found in a.json"),
        (b"[" * 100_000, ParseError, "a.json is nested too deep"),
    ],
)
def test_what_cannot_be_read_is_a_typed_error(content: bytes, error: type[ParseError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        parse(content, "a.json")
    assert caught.value.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["title", "text"]), inner),
)


@given(JSON)
def test_any_json_gives_sound_blocks_or_a_typed_error(value: object) -> None:
    try:
        parsed = parse_json(json.dumps(value).encode(), "a.json")
    except ParseError:
        return
    assert broken_rules(parsed) == []
