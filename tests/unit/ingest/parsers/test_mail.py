"""Mails written for these tests: what people send, in the forms that mail programs give it."""

from __future__ import annotations

from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.mail.marks import without_sending
from ragstone.ingest.parsers.mail.parser import parse_mail

SENT = (
    "\n\nThe mail was sent by Anna Berg <anna@harbour.example> to bo@harbour.example, Clara <clara@harbour.example>, "
    "on Tue, 5 May 2026 08:00 UTC."
)


def mail(subject: str, text: str = "", *, html: str = "", **headers: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = subject
    message["From"] = "Anna Berg <anna@harbour.example>"
    message["To"] = "bo@harbour.example, Clara <clara@harbour.example>"
    message["Date"] = "Tue, 05 May 2026 10:00:00 +0200"
    message["Message-ID"] = "<2@harbour.example>"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    if text or not html:
        message.set_content(text)
        if html:
            message.add_alternative(html, subtype="html")
    else:
        message.set_content(html, subtype="html")
    return message


def parsed(message: EmailMessage | bytes) -> Parsed:
    found = parse_mail(message if isinstance(message, bytes) else message.as_bytes(), "note.eml")
    assert broken_rules(found) == []
    return found


@pytest.mark.req("R-ING-36")
def test_the_text_is_the_subject_a_blank_line_and_the_body() -> None:
    found = parsed(mail("Ferry times", "The ferry leaves at nine.\n\nBring tea.\n"))
    assert found.text == f"Subject: Ferry times\n\nThe ferry leaves at nine.\n\nBring tea.{SENT}"
    assert found.title == "Ferry times"
    assert found.media_type == "message/rfc822"
    assert found.warnings == ()


@pytest.mark.req("R-EXT-01")
def test_headers_become_metadata() -> None:
    message = mail("Re: Ferry", "Yes.", Cc="dora@harbour.example", In_Reply_To="<1@harbour.example>")
    message["References"] = "<0@harbour.example> <1@harbour.example>"
    assert parsed(message).metadata == {
        "source_type": "email",
        "content_type": "email",
        "subject": "Re: Ferry",
        "sender": "Anna Berg <anna@harbour.example>",
        "to": ["bo@harbour.example", "Clara <clara@harbour.example>"],
        "cc": ["dora@harbour.example"],
        "date": "2026-05-05T08:00:00+00:00",
        "message_id": "2@harbour.example",
        "in_reply_to": "1@harbour.example",
        "thread_id": "0@harbour.example",
        "labels": [],
        "has_attachments": False,
    }


def test_a_thread_is_named_by_gmail_or_by_its_first_mail_or_by_the_mail_itself() -> None:
    assert parsed(mail("a", "b", X_GM_THRID="1790")).metadata["thread_id"] == "1790"
    assert parsed(mail("a", "b", In_Reply_To="<1@x.example>")).metadata["thread_id"] == "1@x.example"
    assert parsed(mail("a", "b")).metadata["thread_id"] == "2@harbour.example"
    assert len(parsed(b"Subject: a\n\nb").metadata["thread_id"]) == 32


def test_labels_of_an_export_may_hold_commas_and_encoded_words() -> None:
    message = mail("a", "b")
    raw = b'X-Gmail-Labels: Inbox,"Fares, old",=?UTF-8?Q?F=C3=A4hren?=\n' + message.as_bytes()
    assert parsed(raw).metadata["labels"] == ["Inbox", "Fares, old", "Fähren"]


def test_the_text_says_who_sent_it_and_names_the_first_receivers() -> None:
    people = [f"p{number}@harbour.example" for number in range(8)]
    message = mail("Ferry", "It leaves at nine.\n\nAnna", Cc=", ".join(people))
    assert parsed(message).text == (
        "Subject: Ferry\n\nIt leaves at nine.\n\nThe mail was sent by Anna Berg <anna@harbour.example> to "
        f"bo@harbour.example, Clara <clara@harbour.example>, with a copy to {', '.join(people[:5])} and 3 more, "
        "on Tue, 5 May 2026 08:00 UTC."
    )
    answered = mail("Re: Ferry", "> Is it late?\nNo.\n> Who steers?\nAnna\n")
    assert parsed(answered).text == f"Subject: Re: Ferry\n\n> Is it late?\n\nNo.\n\n> Who steers?\n\nAnna{SENT}"
    assert parsed(b"Subject: a\nDate: Tue, 5 May 2026 10:00:00 +0200\n\nb").text == (
        "Subject: a\n\nb\n\nThe mail was sent on Tue, 5 May 2026 08:00 UTC."
    )


def test_copies_of_a_mail_have_one_text_but_for_its_sending() -> None:
    first, second = (
        parsed(mail("Ferry", "Nine.", html="<p>Nine.</p>", Bcc=one)) for one in ("a@b.example", "c@d.example")
    )
    third = mail("Ferry", "Nine.")
    third.replace_header("To", "dora@harbour.example")
    third.replace_header("Date", "Wed, 06 May 2026 10:00:00 +0200")
    assert first.text == second.text != parsed(third).text
    assert without_sending(first) == without_sending(parsed(third)) == "Subject: Ferry\n\nNine.\n\n"
    assert without_sending(parsed(b"Subject: a\n\nb")) == "Subject: a\n\nb"


@pytest.mark.req("R-EXT-01")
def test_html_alone_is_read_with_its_structure() -> None:
    page = (
        '<html><body class="newsletter"><div id="footer"><h2>Fares</h2><p>From <b>May</b>:</p>'
        "<ul><li>Adults 9</li><li>Dogs 2</li></ul><p style='display:none'>preview</p></div></body></html>"
    )
    found = parsed(mail("News", html=page))
    assert found.text == f"Subject: News\n\nFares\n\nFrom May:\n\n- Adults 9\n- Dogs 2{SENT}"
    assert [block.kind for block in found.blocks] == ["heading", "heading", "paragraph", "list", "table"]


def test_the_plain_version_is_taken_unless_it_only_points_to_the_other() -> None:
    html = f"<p>{'The fares change in May. ' * 20}</p>"
    assert "change" in parsed(mail("a", "Open this mail in a browser.", html=html)).text
    assert "change" in parsed(mail("a", " \n ", html=html)).text
    plain = "The fares change in May: nine for adults, two for dogs, and nothing at all for bicycles."
    assert parsed(mail("a", plain, html="<p>Something else.</p>")).text == f"Subject: a\n\n{plain}{SENT}"


def test_a_plain_part_that_holds_a_page_is_read_as_one() -> None:
    assert (
        parsed(mail("a", "<!DOCTYPE html><html><p>The <b>ferry</b></p></html>")).text
        == f"Subject: a\n\nThe ferry{SENT}"
    )


@pytest.mark.req("R-ING-37", "R-EXT-01")
def test_attachments_are_files_of_their_own(make_pdf: Callable[..., bytes]) -> None:
    pdf = make_pdf(lambda page: page.drawString(72, 720, "Fares from May"))
    message = mail("Fares", "See the table.")
    message.add_attachment(pdf, maintype="application", subtype="pdf", filename="Fares Mai/Gebühren.pdf")
    message.add_attachment("a,b\n1,2\n", subtype="csv", filename="table.csv")
    message.add_attachment(b"x" * 100, maintype="image", subtype="png", cid="<logo>", disposition="inline")
    message.add_attachment(b"seal", maintype="application", subtype="pgp-signature", filename="seal.asc")
    found = parsed(message)
    assert [(one.name, one.media_type) for one in found.attachments] == [
        ("Gebühren.pdf", "application/pdf"),
        ("table.csv", "text/csv"),
    ]
    assert found.attachments[0].content == pdf
    assert found.metadata["has_attachments"] is True
    assert found.text == f"Subject: Fares\n\nSee the table.{SENT}"


def test_a_photograph_shown_in_the_text_is_an_attachment_and_a_logo_is_not() -> None:
    message = mail("Photo", "Look.")
    photo = b"\xff\xd8" + b"x" * 70_000
    message.add_attachment(photo, maintype="image", subtype="jpeg", cid="<1>", disposition="inline")
    assert [one.name for one in parsed(message).attachments] == ["attachment-1.jpg"]


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\secret\\plan.docx", "plan.docx"),
        ("/absolute/report.pdf", "report.pdf"),
        ("..", "attachment-1.pdf"),
        (".hidden.pdf", "hidden.pdf"),
        ("a\x00b\x1f.pdf", "ab.pdf"),
        ("=?utf-8?q?Geb=C3=BChren.pdf?=", "Gebühren.pdf"),
        ("=?utf-8?q?=2E=2E/up.pdf?=", "up.pdf"),
        ("n" * 400 + ".pdf", "n" * 146 + ".pdf"),
        ('con: "x"|y?.pdf', "con_ _x__y_.pdf"),
    ],
)
def test_an_attachments_name_is_never_a_path(given: str, safe: str) -> None:
    message = mail("a", "b")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="NAME")
    quoted = given.replace("\\", "\\\\").replace('"', '\\"')
    raw = message.as_bytes().replace(b'"NAME"', f'"{quoted}"'.encode())
    assert [one.name for one in parsed(raw).attachments] == [safe]


def test_attachments_of_one_name_are_told_apart() -> None:
    message = mail("a", "b")
    for _ in range(3):
        message.add_attachment(b"x", maintype="application", subtype="pdf", filename="scan.pdf")
    assert [one.name for one in parsed(message).attachments] == ["scan.pdf", "scan-2.pdf", "scan-3.pdf"]


def test_a_mail_of_attachments_only_is_a_document() -> None:
    message = EmailMessage()
    message["From"] = "anna@harbour.example"
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="scan.pdf")
    found = parsed(message)
    assert found.text == "Subject: (no subject)\n\nThe mail was sent by anna@harbour.example."
    assert len(found.attachments) == 1


@pytest.mark.req("R-EXT-01")
def test_forwarded_mails_are_content_with_their_files() -> None:
    innermost = mail("Fares", "> Nine for adults.\n\nKind regards,\nDora")
    innermost.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="fares.pdf")
    middle = mail("Fwd: Fares", "Please check.")
    middle.add_attachment(innermost)
    outer = mail("Fwd: Fwd: Fares", "What do you think?\n\nBest regards,\nAnna")
    outer.add_attachment(middle)
    found = parsed(outer)
    head = "From: Anna Berg <anna@harbour.example>\nDate: Tue, 05 May 2026 08:00 UTC"
    receivers = "To: bo@harbour.example, Clara <clara@harbour.example>"
    mark = "---------- Forwarded message ----------"
    assert found.text == (
        f"Subject: Fwd: Fwd: Fares\n\nWhat do you think?{SENT}"
        f"\n\n{mark}\n{head}\nSubject: Fwd: Fares\n{receivers}\n\nPlease check."
        f"\n\n{mark}\n{head}\nSubject: Fares\n{receivers}\n\nNine for adults.\n\nKind regards,\nDora"
    )
    assert [(one.level, one.label) for one in found.blocks if one.kind == "heading"] == [
        (1, "Fwd: Fwd: Fares"),
        (2, "Forwarded message: Fwd: Fares"),
        (3, "Forwarded message: Fares"),
    ]
    assert [one.name for one in found.attachments] == ["fares.pdf"]


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("iso-8859-1", "Die Fähre fährt täglich."),
        ("iso-2022-jp", "船は九時に出ます。"),
        ("koi8-r", "Паром отходит в девять часов утра."),
        ("utf-7", "Die F+AOQ-hre"),
        ("no-such-charset", "Die Fähre fährt täglich."),
    ],
)
def test_bodies_are_read_in_their_charset(charset: str, text: str) -> None:
    encoded = text.encode("utf-8" if charset == "no-such-charset" else "ascii" if charset == "utf-7" else charset)
    raw = f"Subject: a\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    expected = "Die Fähre" if charset == "utf-7" else text
    assert parsed(raw.encode() + encoded).text == f"Subject: a\n\n{expected}"


@pytest.mark.parametrize(
    ("raw", "subject"),
    [
        (b"=?utf-8?B?RsOkaHJl?= =?utf-8?Q?_um_neun?=", "Fähre um neun"),
        ("Fähre".encode("latin-1"), "Fähre"),
        ("Fähre".encode(), "Fähre"),
        (b"=?utf-8?B?RsOkaHJ?= cut", "Fähr cut"),
        (b"=?utf-8?B?A?= broken", "=?utf-8?B?A?= broken"),
        (b"=?nowhere?Q?F=E4hre?=", "Fähre"),
        (b"one\r\n two", "one two"),
    ],
)
def test_subjects_are_decoded(raw: bytes, subject: str) -> None:
    assert parsed(b"From: a@b.example\r\nSubject: " + raw + b"\r\n\r\nText").title == subject


def test_flowed_lines_are_joined() -> None:
    raw = b"Subject: a\nContent-Type: text/plain; format=flowed\n\nThe ferry leaves \nat nine.\nBring tea. \n\nSoon.\n"
    assert parsed(raw).text == "Subject: a\n\nThe ferry leaves at nine.\nBring tea.\n\nSoon."


def test_a_signed_mail_is_read_without_its_seal() -> None:
    raw = (
        b"Subject: a\n\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe ferry leaves.\n"
        b"-----BEGIN PGP SIGNATURE-----\n\niQEz\n-----END PGP SIGNATURE-----\n"
    )
    assert parsed(raw).text == "Subject: a\n\nThe ferry leaves."


@pytest.mark.parametrize(
    ("raw", "way"),
    [
        (b"Subject: a\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--", "PGP"),
        (b"Subject: a\n\n-----BEGIN PGP MESSAGE-----\n\nhQ==\n-----END PGP MESSAGE-----", "PGP"),
        (b"Subject: a\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIIB", "S/MIME"),
    ],
)
def test_an_encrypted_mail_says_so(raw: bytes, way: str) -> None:
    with pytest.raises(ParseError, match=f"note.eml is encrypted or sealed with {way}") as caught:
        parsed(raw)
    assert "decrypted" in caught.value.hint


def test_outlooks_own_container_is_reported() -> None:
    message = mail("a", "See the table.")
    message.add_attachment(b"\x78\x9f", maintype="application", subtype="ms-tnef", filename="winmail.dat")
    found = parsed(message)
    assert found.attachments == ()
    assert found.warnings == ("winmail.dat, a container of Outlook's own, was not opened",)


@pytest.mark.parametrize("raw", [b"just words\n\nno headers", b"\x00\x01\x02", b": :\n\nx"])
def test_what_has_no_headers_is_no_mail(raw: bytes) -> None:
    with pytest.raises(ParseError, match=r"note\.eml is not a mail"):
        parsed(raw)


def test_a_mail_without_a_word_is_empty() -> None:
    with pytest.raises(EmptyDocument, match=r"no text was found in note\.eml"):
        parsed(b"From: anna@harbour.example\n\n \n")


@pytest.mark.parametrize(
    ("header", "date"),
    [
        ("Tue, 5 May 2026 10:00:00", "2026-05-05T10:00:00+00:00"),
        ("no date", None),
        ("Tue, 5 May 99999 10:00:00 +9999", None),
        ("", None),
    ],
)
def test_dates_that_cannot_be_read_are_left_out(header: str, date: Any) -> None:
    raw = f"Subject: a\nDate: {header}\n\nb".encode()
    assert parsed(raw).metadata.get("date") == date


def test_a_mail_without_a_date_has_that_of_its_arrival() -> None:
    raw = b"Received: by mx.example; Tue, 5 May 2026 10:00:00 +0000\nSubject: a\n\nb"
    assert parsed(raw).metadata["date"] == "2026-05-05T10:00:00+00:00"
