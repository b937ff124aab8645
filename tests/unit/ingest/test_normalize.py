from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from ragstone.core.errors import InputError
from ragstone.core.types import Item, Parsed
from ragstone.ingest.extract import normalize, plain_text
from ragstone.ingest.parsers.draft import Draft, broken_rules
from ragstone.ingest.parsers.text.markdown import parse_markdown
from ragstone.ingest.parsers.web.html import parse_html

TEXT = "The last ferry of the day leaves the harbour shortly before midnight."
MODIFIED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ITEM = Item("files", "a.md", "notes/a.md", b"")


def parsed(text: str = TEXT, *, title: str = "", media_type: str = "text/plain", **metadata: Any) -> Parsed:
    draft = Draft("a.md")
    draft.add("paragraph", text)
    return draft.finish(media_type, title=title, metadata=metadata)


def merged(item: dict[str, Any] | None = None, **stated: Any) -> dict[str, Any]:
    return dict(normalize(replace(ITEM, metadata=item or {}), parsed(**stated)).metadata)


@pytest.mark.req("R-NRM-02", "R-NRM-10")
def test_a_markdown_page_says_what_it_is() -> None:
    page = b"---\ntitle: Ferries\nauthor: Ada Lund\ndate: 2026-01-31\n---\n# Ferries\n\n" + TEXT.encode()
    item = Item("notes", "f.md", "notes/f.md", page, metadata={"parent_doc_id": "p1"}, modified_at=MODIFIED)
    assert normalize(item, parse_markdown(page, "f.md")).metadata == {
        "title": "Ferries",
        "author": "Ada Lund",
        "date": "2026-01-31T00:00:00+00:00",
        "source": "notes",
        "language": "en",
        "parent_doc_id": "p1",
    }


@pytest.mark.req("R-NRM-02")
def test_a_web_page_says_what_it_is() -> None:
    page = f"""<html lang="de"><head><title>Ferries</title><meta name="author" content="Ada Lund">
    <meta property="article:published_time" content="2026-01-31T10:00:00+01:00">
    <link rel="canonical" href="/ferries"></head><body><p>{TEXT}</p></body></html>""".encode()
    item = Item("web", "1", "https://sound.example/ferries?utm=1", page, metadata={"source_type": "web"})
    assert normalize(item, parse_html(page, "1")).metadata == {
        "title": "Ferries",
        "author": "Ada Lund",
        "date": "2026-01-31T09:00:00+00:00",
        "url": "https://sound.example/ferries",
        "source": "web",
        "source_type": "web",
        "language": "en",
    }


def test_the_parsed_document_carries_the_same_and_is_otherwise_untouched() -> None:
    before = parsed(title="Stated")
    normalized = normalize(ITEM, before)
    assert normalized == replace(before, metadata=normalized.metadata)
    assert broken_rules(normalized) == []


@pytest.mark.parametrize(
    ("given", "stated", "title"),
    [
        ("Given", "Stated", "Given"),
        ("", "Stated", "Stated"),
        ("", "", "a.md"),
        (" Two\nlines\t", "", "Two lines"),
        ("hid\u200bden \ud800", "", "hidden \ufffd"),
        ("long" * 1000, "", "long" * 125),
    ],
)
def test_the_title_is_the_source_s_then_the_file_s_then_the_name(given: str, stated: str, title: str) -> None:
    normalized = normalize(replace(ITEM, title=given), parsed(title=stated))
    assert normalized.title == title
    assert normalized.metadata["title"] == title


@pytest.mark.req("R-NRM-10")
def test_what_the_source_says_wins_and_the_rest_is_kept() -> None:
    source = {"author": "Ben", "date": "2025-05-05", "content_type": "news", "source": "gmail", "labels": ["a"]}
    found = merged(source, author="Ada", date="2026-01-01", content_type="doc", source="forged", pages=3)
    assert found["author"] == "Ben"
    assert found["date"] == "2025-05-05T00:00:00+00:00"
    assert found["content_type"] == "news"
    assert found["source"] == "gmail"
    assert found["labels"] == ["a"]
    assert found["pages"] == 3


def test_a_file_cannot_say_where_it_is_from() -> None:
    claims = {"parent_doc_id": "other", "attachment": True, "hidden_characters": 7, "near_duplicate_of": "other"}
    found = merged(source="bank", near_duplicate_similarity=1.0, **claims)
    assert found["source"] == "files"
    assert not {*claims, "near_duplicate_similarity"} & set(found)


def test_mail_is_mail_whatever_it_holds() -> None:
    assert merged(media_type="message/rfc822")["content_type"] == "email"
    assert "content_type" not in merged()


@pytest.mark.parametrize(
    ("stated", "author"),
    [
        ({"author": " Ada\n Lund "}, "Ada Lund"),
        ({"authors": ["Ada Lund", "Ben Arden"]}, "Ada Lund, Ben Arden"),
        ({"authors": [{"name": "Ada Lund", "id": 7}, {"id": 8}, 9]}, "Ada Lund"),
        ({"sender": "Ada Lund <ada@sound.example>"}, "Ada Lund <ada@sound.example>"),
        ({"author": "", "creator": "Ada"}, "Ada"),
        ({"author": 7, "byline": "Ada"}, "Ada"),
        ({"author": "x" * 5000}, "x" * 300),
    ],
)
def test_authors(stated: dict[str, Any], author: str) -> None:
    assert merged(**stated)["author"] == author


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31T10:00:00+01:00", "2026-01-31T09:00:00+00:00"),
        (date(2026, 1, 31), "2026-01-31T00:00:00+00:00"),
        (datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))), "2026-01-31T10:00:00+00:00"),
        ("Sat, 31 Jan 2026 10:00:00 +0100", "2026-01-31T09:00:00+00:00"),
        ("January 31, 2026", "2026-01-31T00:00:00+00:00"),
        ("31 Jan 2026", "2026-01-31T00:00:00+00:00"),
        ("31.01.2026", "2026-01-31T00:00:00+00:00"),
        ("2026-01", "2026-01-01T00:00:00+00:00"),
        (2026, "2026-01-01T00:00:00+00:00"),
        ("2026", "2026-01-01T00:00:00+00:00"),
    ],
)
def test_dates(value: Any, moment: str) -> None:
    assert merged(date=value)["date"] == moment
    assert merged({"published_date": value})["date"] == moment


@pytest.mark.parametrize(
    "value",
    ["soon", "9999-99-99", "0001-01-01T00:00:00+14:00", "Sat, 99 Foo 2026 10:00:00 +9999", "1" * 5000, True, 10**30],
)
def test_a_date_that_cannot_be_read_is_not_one(value: Any) -> None:
    item = replace(ITEM, modified_at=MODIFIED)
    assert normalize(item, parsed(published=value)).metadata["date"] == "2026-03-04T05:06:07+00:00"
    assert "date" not in merged(published=value)


def test_a_date_for_people_is_kept_as_written() -> None:
    found = merged(date="spring of 1912")
    assert "date" not in found
    assert found["date_as_written"] == "spring of 1912"


@pytest.mark.parametrize(
    ("uri", "given", "stated", "url"),
    [
        ("notes/a.md", {}, {}, None),
        ("https://sound.example/a", {}, {}, "https://sound.example/a"),
        ("https://sound.example/a?x=1", {}, {"url": "/a"}, "https://sound.example/a"),
        ("https://sound.example/a", {}, {"url": "https://evil.example/a"}, "https://sound.example/a"),
        ("notes/a.html", {}, {"url": "https://sound.example/a"}, "https://sound.example/a"),
        ("notes/a.md", {}, {"source": "https://sound.example/a"}, "https://sound.example/a"),
        ("notes/a.md", {}, {"url": "/a"}, None),
        ("gmail:1", {"url": "https://mail.example/1"}, {"url": "https://evil.example"}, "https://mail.example/1"),
        ("https://sound.example/a", {"url": "javascript:alert(1)"}, {}, "https://sound.example/a"),
        ("notes/a.md", {}, {"url": "https://bank.example@evil.example/"}, None),
        ("https://user:secret@sound.example/a", {}, {}, None),
        ("notes/a.md", {}, {"url": "https://[broken"}, None),
        ("notes/a.md", {}, {"url": "https://sound.example/a\nb"}, None),
        ("notes/a.md", {}, {"url": "https://sound.example/" + "a" * 5000}, None),
        ("notes/a.md", {}, {"url": 7}, None),
    ],
)
def test_addresses(uri: str, given: dict[str, Any], stated: dict[str, Any], url: str | None) -> None:
    found = normalize(replace(ITEM, uri=uri, metadata=given), parsed(**stated)).metadata
    assert found.get("url") == url


@pytest.mark.req("R-NRM-01")
@pytest.mark.parametrize(
    ("text", "given", "stated", "language"),
    [
        (TEXT, None, None, "en"),
        (TEXT, None, "de", "en"),
        (TEXT, "fr-CA", None, "fr"),
        ("Short.", None, "de_AT", "de"),
        ("Short.", None, "<script>", None),
        ("Short.", None, None, None),
    ],
)
def test_language(text: str, given: str | None, stated: str | None, language: str | None) -> None:
    item = replace(ITEM, metadata={"language": given} if given else {})
    found = normalize(item, parsed(text, **({"language": stated} if stated else {})))
    assert found.metadata.get("language") == language


def test_language_is_not_detected_when_it_is_switched_off() -> None:
    assert "language" not in normalize(ITEM, parsed(), detect=False).metadata
    assert normalize(ITEM, parsed(language="de"), detect=False).metadata["language"] == "de"


def test_text_without_a_file_is_normalized_like_any_other() -> None:
    item = Item("api", "7", "api/7", TEXT, title="Ferries", modified_at=MODIFIED)
    normalized = normalize(item, plain_text(TEXT, item.uri, item.title))
    assert normalized.text == f"Ferries\n\n{TEXT}"
    assert normalized.metadata == {
        "title": "Ferries",
        "source": "api",
        "language": "en",
        "date": "2026-03-04T05:06:07+00:00",
    }


def test_hidden_characters_are_counted() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    item = Item("api", "7", "api/7", f"Buy {hidden}now\u200b.\n\nAnd {hidden}here.")
    normalized = normalize(item, plain_text(str(item.content), item.uri))
    assert normalized.text == "Buy now.\n\nAnd here."
    assert normalized.metadata["hidden_characters"] == 9


@pytest.mark.req("R-NRM-03")
@pytest.mark.parametrize(("source_type", "kept"), [("web", False), ("rss", False), ("files", True)])
def test_boilerplate_goes_from_web_text_only(source_type: str, kept: bool) -> None:
    draft = Draft("a.html")
    draft.add("paragraph", TEXT)
    draft.add("paragraph", "© 2026 Kestrel Sound Ferries. All rights reserved.")
    item = replace(ITEM, metadata={"source_type": source_type})
    normalized = normalize(item, draft.finish("text/html"))
    assert ("All rights reserved" in normalized.text) is kept
    assert broken_rules(normalized) == []


def test_metadata_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(InputError, match="is not a field name"):
        merged({"no field": 1})
