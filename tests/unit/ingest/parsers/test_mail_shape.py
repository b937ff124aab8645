"""Mail is known by its head, whatever its file is called."""

from __future__ import annotations

import time

import pytest

from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.mail.shape import begins_mailbox, looks_like_mail

MESSAGE = (
    b"Return-Path: <anna@example.org>\r\n"
    b"From: Anna Berg <anna@example.org>\r\n"
    b"To: crew@example.org\r\n"
    b"Subject: Winter\r\n timetable\r\n"
    b"Date: Mon, 3 Nov 2025 10:00:00 +0100\r\n\r\n"
    b"The late ferry is cancelled from December on.\r\n"
)


@pytest.mark.parametrize(
    "name",
    ["1699999.M1P2.host:2,S", "17", "message", "sent.5", "archive.txt", "mail.md", "a.eml", "1762.V801.box,S=99"],
)
def test_a_message_is_mail_whatever_its_file_is_called(name: str) -> None:
    parsed = parse(MESSAGE, name)
    assert (parsed.media_type, parsed.title) == ("message/rfc822", "Winter timetable")
    assert parsed.metadata["sender"] == "Anna Berg <anna@example.org>"
    assert "The late ferry is cancelled" in parsed.text


@pytest.mark.parametrize(
    "text",
    [
        b"Note: the ferry is late.\n\nIt waits.\n",
        b"From: Anna\nTo: all crews\nSubject: the picnic\nDate: the third of May\n\nBring cake.\n",
        b"From: Anna Berg\nTo: crew\nDate: Mon, 3 Nov 2025 10:00:00 +0100\nSubject: memo\n\nBring cake.\n",
        b"Subject: the picnic\nMail anna@example.org for more.\nFrom: anna@example.org\n\nBring cake.\n",
        b"Package: ferry\nVersion: 1.0\nMaintainer: Anna <anna@example.org>\nDate: Mon, 3 Nov 2025 10:00:00 +0100\n\n",
        b"From: anna@example.org is who wrote it.\n\nMore words.\n",
        b"From the harbour at 10:30 in 2025 we left.\nFrom: a\n",
        b"title: Ferry\nauthor: Anna\ndate: 2025-11-03\n\nWords.\n",
    ],
)
def test_a_text_that_only_begins_like_a_header_is_no_mail(text: bytes) -> None:
    assert not looks_like_mail(text)
    assert parse(text, "note").media_type == "text/plain"


@pytest.mark.parametrize("name", ["fares.csv", "fares.json", "fares.py"])
def test_tables_data_and_code_are_never_mail(name: str) -> None:
    content = b'"' + MESSAGE.replace(b"\r\n", b" ").replace(b'"', b"") + b'"\n' if name.endswith("json") else MESSAGE
    assert parse(content, name).media_type != "message/rfc822"


def test_a_mailbox_is_known_by_its_first_line_and_the_message_behind_it() -> None:
    assert begins_mailbox(b"From anna@example.org Mon Nov  3 10:00:00 2025\n" + MESSAGE)
    assert not begins_mailbox(MESSAGE)
    assert not begins_mailbox(b"From anna we heard at 10:00 in 2025\nthat the ferry is late.\n\nMore.\n")


@pytest.mark.parametrize(
    "head", [b"a: b\n" * 200_000, b"a:\n" + b" \n" * 500_000, b"a" * 1_000_000, b"From " * 200_000]
)
def test_a_long_head_is_told_in_no_time(head: bytes) -> None:
    began = time.process_time()
    assert not looks_like_mail(head)
    assert time.process_time() - began < 0.5
