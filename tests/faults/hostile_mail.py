"""Hostile mails and mailboxes."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from tests.faults.hostile_file import Bait, Hostile, archive, zero_bomb, zipped

HEAD = b"From: Anna <anna@ferry.example>\nSubject: Ferry\n"
MIXED = HEAD + b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=edge\n\n"
WORDS = b"--edge\nContent-Type: text/plain\n\nThe ferry leaves at nine.\n"


def attached(name: bytes, content: bytes, kind: bytes = b"application/octet-stream") -> bytes:
    """A mail with one file."""
    packed = base64.encodebytes(content)
    part = b"--edge\nContent-Type: %s\nContent-Transfer-Encoding: base64\n" % kind
    part += b"Content-Disposition: attachment; filename=%s\n\n%s\n--edge--\n" % (name, packed)
    return MIXED + WORDS + part


def mail_files(bait: Bait) -> Iterator[Hostile]:
    """Mails that are deep, endless, or not what they say."""
    deep = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(3000))
    alternating = b"".join(
        b"Content-Type: multipart/alternative; boundary=b%d\n\n--b%d\nContent-Type: text/plain\n\nx\n--b%d\n"
        % (n, n, n)
        for n in range(60)
    )
    forwards = b"Content-Type: message/rfc822\n\nSubject: inner\n"
    pieces = b"; ".join(b"a*%d*=x" % number for number in range(9000))
    coded = b"Content-Transfer-Encoding: x-uuencode\n\n"
    outer = f'Content-Type: message/external-body; access-type=URL; URL="{bait.url}"\n\nwords'
    mails = {
        "parts in parts": HEAD + deep,
        "versions in versions": HEAD + alternating,
        "forwards in forwards": HEAD + forwards * 300 + b"\nwords",
        "twenty thousand parts": MIXED + WORDS * 20_000,
        "an edge of itself": HEAD + b"Content-Type: multipart/mixed; boundary=--\n\n" + b"----\n" * 20_000,
        "an empty edge": HEAD + b'Content-Type: multipart/mixed; boundary=""\n\n--\nwords\n',
        "an edge without end": HEAD + b"Content-Type: multipart/mixed; boundary=" + b"x" * 200_000 + b"\n\nwords",
        "headers without end": HEAD + b"X-Long: " + b"a" * 1_000_000 + b"\n\nwords",
        "a hundred thousand headers": HEAD + b"X-A: b\n" * 100_000 + b"\nwords",
        "folded headers": HEAD + b"X-A: b\n" + b" c\n" * 100_000 + b"\nwords",
        "words in words": b"From: a@x.example\nSubject: " + b"=?utf-8?q?a?= " * 20_000 + b"\n\nwords",
        "words that never end": b"From: a@x.example\nSubject: " + b"=?utf-8?b?" * 50_000 + b"\n\nwords",
        "senders": b"From: " + b'"a" <' * 50_000 + b"\nSubject: Ferry\n\nwords",
        "references": HEAD + b"References: " + b"<a@b> " * 50_000 + b"\n\nwords",
        "a day that never was": HEAD + b"Date: Mon, 99 Foo 99999 99:99:99 +9999\n\nwords",
        "a day beyond numbers": HEAD + b"Date: " + b"9" * 4000 + b"\n\nwords",
        "parameters in pieces": HEAD + b"Content-Type: text/plain; " + pieces + b"\n\nwords",
        "a charset of python": HEAD + b"Content-Type: text/plain; charset=unicode_escape\n\nwords \\x41\xe9",
        "a charset that packs": HEAD + b"Content-Type: text/plain; charset=zlib\n\nwords \xe9",
        "a charset without end": HEAD + b"Content-Type: text/plain; charset=" + b"x" * 100_000 + b"\n\nwords \xe9",
        "nul in it": HEAD + b"\nwo\x00rds",
        "half characters": HEAD + b"Content-Type: text/plain; charset=utf-8\n\nwords \xed\xa0\xbd",
        "equals signs": HEAD + b"Content-Transfer-Encoding: quoted-printable\n\n" + b"=" * 500_000 + b"words",
        "base64 that is none": HEAD + b"Content-Transfer-Encoding: base64\n\n" + b"!A=" * 100_000,
        "uuencode without end": HEAD + coded + b"begin 644 ../hostile-escape\n" + b"M" * 100_000,
        "quotes in quotes": HEAD + b"\n" + b"> " * 100_000 + b"words",
        "quotes of quotes": HEAD + b"\nwords\n" + b"".join(b">" * n + b" x\n" for n in range(1, 800)),
        "who wrote": HEAD + b"In-Reply-To: <1@x>\n\nwords\n" + b"On Monday someone wrote:\n" * 20_000,
        "dashes": HEAD + b"\nwords\n" + b"-" * 500_000,
        "signatures": HEAD + b"\nwords\n" + b"-- \nx\n" * 30_000,
        "a page in it": HEAD + b"Content-Type: text/html\n\n" + b"<div>" * 30_000 + b"words",
        "quotes in a page": HEAD + b"Content-Type: text/html\n\nwords" + b"<blockquote>" * 5000,
        "an outer body": HEAD + outer.encode(),
        "a part of a mail": HEAD + b'Content-Type: message/partial; id="x"; number=1; total=99999999999\n\nwords',
        "hidden orders": HEAD + b"Content-Type: text/plain; charset=utf-8\n\n" + "wo\u200brds\u202e".encode(),
        "a part that shows itself": MIXED + b"--edge\nContent-Type: text/html\nContent-ID: <a>\n\n<img src=cid:a>words",
        "a file that is noise": attached(b"x.bin", bytes(range(256)) * 100),
        "a file that is a bomb": attached(b"x.docx", archive([zero_bomb("word/document.xml", 90)])),
        "an archive as a file": attached(b"x.zip", zipped({"../hostile-escape.txt": "escaped", "a.txt": "words"})),
        "a mail as a file": attached(b"x.eml", HEAD + b"\nwords", b"message/rfc822"),
    }  # fmt: skip
    for name, content in mails.items():
        yield Hostile(f"{name}.eml", content, bomb=name == "a file that is a bomb")
    names = {
        "up": b"../../hostile-escape.txt",
        "from the root": b"/tmp/hostile-escape.txt",
        "of a drive": rb'"C:\\Windows\\hostile-escape.txt"',
        "with a nul": b'"hostile-escape\x00.txt"',
        "in pieces": b'x; filename*0="../"; filename*1="hostile-escape.txt"',
        "in percents": b"x; filename*=utf-8''%2e%2e%2fhostile-escape.txt",
        "without end": b'"' + b"hostile-escape" * 5000 + b'.txt"',
        "turned round": "\u202etxt.hostile-escape".encode(),
        "of nothing": b'"..."',
    }
    for name, given in names.items():
        yield Hostile(f"a file with a name {name}.eml", attached(given, b"words"), "any", "leaves at nine")
    refused = {
        "no mail at all": (b"just words\n", "is not a mail"),
        "locked": (HEAD + b'Content-Type: multipart/encrypted; boundary="e"\n\n--e\n\nx\n--e--', "encrypted"),
        "nothing in it": (b"MIME-Version: 1.0\n\n", "no text was found"),
    }
    for name, (content, says) in refused.items():
        yield Hostile(f"{name}.eml", content, "refused", says)


def mbox_files() -> Iterator[Hostile]:
    """Mailboxes."""
    line = b"From anna@ferry.example Mon Nov  2 09:00:00 2026\n"
    mail = line + HEAD + b"\nThe ferry leaves at nine.\n\n"
    locked = line + HEAD + b"Content-Type: multipart/encrypted\n\nx\n\n"
    boxes = {
        "no mailbox": b"just words\n" * 1000,
        "nothing but lines between": line * 20_000,
        "a line without end": line + HEAD + b"\n" + b"x" * 3_000_000,
        "the same mail": mail * 3000,
        "the same name": b"".join(
            line + HEAD + b"Message-ID: <same@x>\n\nwords %d\n\n" % number for number in range(60)
        ),
        "names that climb": line + HEAD + b"Message-ID: <../../hostile-escape>\n\nwords\n\n",
        "names that hide": line + HEAD + b"Message-ID: <\xe2\x80\xae\x00/x.md>\n\nwords\n\n",
        "lines that look like ends": line + HEAD + b"\n" + b"From here to there\n\n" * 20_000,
        "quoted lines": line + HEAD + b"\n" + b">" * 100_000 + b"From x\nwords\n",
        "noise": line + bytes(range(256)) * 100,
        "cut in a file": line + attached(b"x.bin", bytes(5000))[:-3000],
        "no line ends": line.replace(b"\n", b"\r") * 100,
        "a locked mail among others": mail + locked + mail.replace(b"nine", b"ten"),
    }  # fmt: skip
    for name, content in boxes.items():
        yield Hostile(f"{name}.mbox", content)
