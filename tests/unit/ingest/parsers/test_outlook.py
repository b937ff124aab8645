"""Messages of Outlook, written here byte by byte."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest
from tests.unit.ingest.parsers.ole_kit import Tree, msg_tree, write_msg, write_ole

from ragstone.core.errors import ParseError, ParserLimit
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.mail.compressed_rtf import decompress

SENT = int((datetime(2026, 1, 31, 9, 5, tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
HEAD = {0x37: "Fähre nach Sula", 0x0C1A: "Anna Bérg", 0x5D01: "anna@example.org", 0x1035: "<1@example.org>"}
RTF = rb"{\rtf1\ansi The ferry leaves at nine.\par}"


def person(name: str, address: str, role: int) -> Tree:
    return msg_tree({0x3001: name, 0x39FE: address}, numbers={0x0C15: role}, header=8)


PEOPLE: Tree = {
    "__recip_version1.0_#00000000": person("Ola", "ola@example.org", 1),
    "__recip_version1.0_#00000001": person("Kari", "kari@example.org", 2),
}


def read(content: bytes, name: str = "note.msg") -> Parsed:
    parsed = parse(content, name)
    assert broken_rules(parsed) == []
    return parsed


@pytest.mark.parametrize("name", ["note.msg", "note", "note.bin"])
def test_a_message_is_read_with_its_people_and_its_date(name: str) -> None:
    texts = {**HEAD, 0x1000: "The ferry leaves at nine.\r\n"}
    parsed = read(write_msg(texts, numbers={0x39: SENT}, folders=PEOPLE), name)
    assert (parsed.media_type, parsed.title) == ("message/rfc822", "Fähre nach Sula")
    assert parsed.text == (
        "Subject: Fähre nach Sula\n\nThe ferry leaves at nine.\n\nThe mail was sent by Anna Bérg <anna@example.org> to "
        "Ola <ola@example.org>, with a copy to Kari <kari@example.org>, on Sat, 31 Jan 2026 09:05 UTC."
    )
    known = {key: parsed.metadata[key] for key in ("sender", "to", "cc", "message_id")}
    assert known == {
        "sender": "Anna Bérg <anna@example.org>",
        "to": ["Ola <ola@example.org>"],
        "cc": ["Kari <kari@example.org>"],
        "message_id": "1@example.org",
    }
    assert str(parsed.metadata["date"]).startswith("2026-01-31T09:05:00")


@pytest.mark.parametrize(
    "body",
    [
        {0x1013: b"<p>The ferry <b>leaves</b> at nine.</p>"},
        {0x1009: struct.pack("<II4sI", len(RTF) + 12, len(RTF), b"MELA", 0) + RTF},
    ],
)
def test_without_plain_text_the_page_or_the_rtf_is_read(body: dict[int, bytes]) -> None:
    assert "The ferry leaves at nine." in read(write_msg(HEAD, binaries=body)).text


def test_old_messages_are_read_in_their_code_page() -> None:
    texts = {0x37: "Паром", 0x1000: "Паром уходит в девять."}
    parsed = read(write_msg(texts, numbers={0x3FFD: 1251}, ansi="cp1251"))
    assert parsed.text == "Subject: Паром\n\nПаром уходит в девять."


def test_files_and_messages_inside_are_found() -> None:
    inner = msg_tree({0x37: "Fog", 0x1000: "The fog has lifted."}, header=24)
    folders: Tree = {
        "__attach_version1.0_#00000000": msg_tree(
            {0x3707: "fårer.txt", 0x370E: "text/plain"}, binaries={0x3701: b"Nine crowns."}, header=8
        ),
        "__attach_version1.0_#00000001": {**msg_tree({}, header=8), "__substg1.0_3701000D": inner},
    }
    parsed = read(write_msg({**HEAD, 0x1000: "See below."}, folders=folders))
    assert [(one.name, one.content) for one in parsed.attachments] == [("fårer.txt", b"Nine crowns.")]
    assert "The fog has lifted." in parsed.text


def test_references_into_what_was_unpacked_are_followed() -> None:
    # Literal "ab", then three bytes from where they begin: the reference overlaps what it writes. Then the end.
    begin = 207
    packed = bytes([0b1100]) + b"ab" + struct.pack(">HH", begin << 4 | 1, (begin + 5) << 4)
    assert decompress(struct.pack("<II4sI", len(packed) + 12, 5, b"LZFu", 0) + packed) == b"ababa"


def test_sealed_broken_and_overfull_messages_are_said_to_be() -> None:
    with pytest.raises(ParseError, match="encrypted or sealed with S/MIME"):
        read(write_msg({**HEAD, 0x1A: "IPM.Note.SMIME"}))
    with pytest.raises(ParseError, match=r"note\.msg"):
        read(write_msg({**HEAD, 0x1000: "words " * 2000})[:4000])
    with pytest.raises(ParseError, match="is not an Outlook message"):
        read(b"words", "note.msg")
    many: Tree = {f"__attach_version1.0_#{n:08X}": msg_tree({0x3707: "a"}, header=8) for n in range(600)}
    with pytest.raises(ParserLimit, match="more than 500 parts"):
        read(write_msg(HEAD, folders=many))


def test_an_encrypted_office_file_is_said_to_be() -> None:
    with pytest.raises(ParseError, match="is encrypted"):
        parse(write_ole({"EncryptedPackage": b"x" * 5000, "EncryptionInfo": b"y"}), "plan.xlsx")
