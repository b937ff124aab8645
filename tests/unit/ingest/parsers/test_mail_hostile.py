"""Mails that were broken on the way, and mails that were made to break their reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.mail.parser import MAX_DEPTH, MAX_PARTS, parse_mail

MIXED = b"Subject: Ferry\nContent-Type: multipart/mixed"
TWO_PARTS = (
    b"--edge\nContent-Type: text/plain\n\nThe ferry leaves at nine.\n"
    b"--edge\nContent-Type: application/pdf; name=fares.pdf\n\n%PDF-\n--edge--\n"
)


@pytest.mark.parametrize("declared", [b"", b"; boundary=other", b'; boundary=""', b"; boundary*0=a; boundary*=b"])
def test_parts_are_found_without_a_usable_boundary(declared: bytes) -> None:
    found = parse_mail(MIXED + declared + b"\n\n" + TWO_PARTS, "note.eml")
    assert found.text == "Subject: Ferry\n\nThe ferry leaves at nine."
    assert [one.name for one in found.attachments] == ["fares.pdf"]


def test_a_mail_that_was_cut_off_gives_what_arrived() -> None:
    cut = MIXED + b"; boundary=edge\n\n" + TWO_PARTS[:50]
    assert parse_mail(cut, "note.eml").text == "Subject: Ferry\n\nThe ferry leaves"


def test_parts_that_are_none_are_read_as_text() -> None:
    assert parse_mail(MIXED + b"; boundary=edge\n\nOnly words.", "note.eml").text == ("Subject: Ferry\n\nOnly words.")


def test_base64_that_is_none_does_not_lose_the_mail() -> None:
    raw = b"Subject: Ferry\nContent-Transfer-Encoding: base64\n\nVGhlIGZlcnJ5!!!IQ"
    assert parse_mail(raw, "note.eml").text.startswith("Subject: Ferry\n\nThe ferry")


def nested(depth: int) -> bytes:
    levels = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\nContent-Type: text/plain\n\nlevel %d\n--b%d\n"
        % (level, level, level, level)
        for level in range(depth)
    )
    return b"Subject: Deep\n" + levels


def test_what_is_nested_too_deep_is_left_out_and_reported() -> None:
    found = parse_mail(nested(MAX_DEPTH + 10), "note.eml")
    assert f"level {MAX_DEPTH - 1}" in found.text
    assert f"level {MAX_DEPTH}" not in found.text
    assert found.warnings == (f"parts beyond {MAX_DEPTH} levels were not read",)


def test_forwards_in_forwards_end_as_well() -> None:
    raw = b"Subject: Deep\n" + b"Content-Type: message/rfc822\n\nSubject: inner\n" * 60 + b"\nwords"
    found = parse_mail(raw, "note.eml")
    assert found.text.count("Subject: inner") == MAX_DEPTH + 1
    assert found.warnings == (f"parts beyond {MAX_DEPTH} levels were not read",)


def test_a_bottomless_mail_is_refused() -> None:
    with pytest.raises(ParseError, match=r"note\.eml is nested too deep to be read"):
        parse_mail(nested(5000), "note.eml")


def test_more_parts_than_anybody_sends_are_left_out_and_reported() -> None:
    part = b"--b\nContent-Type: application/pdf; name=x.pdf\n\nx\n"
    found = parse_mail(MIXED + b"; boundary=b\n\n" + part * (MAX_PARTS + 500), "note.eml")
    assert len(found.attachments) == MAX_PARTS - 1
    assert len({one.name for one in found.attachments}) == MAX_PARTS - 1
    assert found.warnings == (f"parts beyond {MAX_PARTS} parts were not read",)


@pytest.mark.parametrize(
    "headers",
    [
        b"Subject: " + b"=?a?q?" * 100_000,
        b"From: " + b"(" * 100_000,
        b"To: " + b'"<,' * 100_000,
        b"References: " + b"<" * 100_000,
        b"Content-Type: text/plain" + b";" * 500_000,
        b"Content-Type: text/plain; " + b"; ".join(b"name*%d=x" % n for n in range(20_000)),
        b"Content-Disposition: attachment; filename*0=a; filename*=b",
        b"Content-Type: text/plain; charset=" + b"x" * 100_000,
        b"Content-Type: text/plain; charset=punycode",
        b"Content-Type: text/plain; charset=rot13",
        b"Content-Type: text/plain; charset=\xff\xfe",
        b"Content-Transfer-Encoding: x-uuencode",
        b"Date: " + b"9" * 5000,
        b"X-Gmail-Labels: " + b'"' * 100_000,
    ],
    ids=lambda headers: headers[:30].decode("latin-1"),
)
def test_headers_made_to_hang_or_crash_do_neither(headers: bytes) -> None:
    found = parse_mail(headers + b"\nMessage-ID: <1@x.example>\n\nThe ferry \xe4 leaves.", "note.eml")
    assert broken_rules(found) == []
    assert found.metadata["message_id"] == "1@x.example"


@pytest.mark.parametrize(
    "body",
    [
        b"On " + b"a " * 200_000 + b"wrote:\n> x",
        b"> " * 200_000,
        b"From: x\nSent: y\n" * 5_000,
        b"Thanks,\n" * 20_000,
        b"-" * 500_000,
        b"<html>" + b"<blockquote>" * 50_000 + b"words",
        b"<html>" + b"<p class=" * 50_000 + b"words",
        b"<html><p " + b"class " * 50_000 + b">words",
    ],
    ids=lambda body: body[:20].decode(),
)
def test_bodies_made_to_hang_do_not(body: bytes) -> None:
    found = parse_mail(b"Subject: Re: x\nIn-Reply-To: <1@x.example>\n\n" + body, "note.eml")
    assert broken_rules(found) == []
    assert found.title == "Re: x"


def test_hidden_characters_are_taken_out_and_counted() -> None:
    raw = "Subject: Fer\u200bry\nContent-Type: text/plain; charset=utf-8\n\nThe \u202efer\u200bry".encode()
    found = parse_mail(raw, "note.eml")
    assert found.text == "Subject: Ferry\n\nThe ferry"
    assert found.warnings == ("2 hidden characters were removed",)


WHOLE = MIXED + b"; boundary=edge\nFrom: Anna <a@x.example>\nDate: Tue, 5 May 2026 10:00:00 +0200\n\n" + TWO_PARTS


@given(st.data())
def test_a_damaged_mail_is_read_or_refused(data: st.DataObject) -> None:
    broken = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.integers(0, len(broken)))
        end = data.draw(st.integers(start, min(len(broken), start + 12)))
        broken[start:end] = data.draw(st.binary(max_size=6))
    try:
        found = parse_mail(bytes(broken), "note.eml")
    except ParseError:
        return
    assert broken_rules(found) == []
