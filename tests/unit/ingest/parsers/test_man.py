from __future__ import annotations

import re
from time import process_time

import pytest

from ragstone.core.errors import EmptyDocument
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules

MARKUP = re.compile(r"\\[a-zA-Z(\[*&|-]|^\.[A-Za-z]", re.MULTILINE)


def read(source: str, name: str = "ferry.1") -> Parsed:
    parsed = parse(source.encode(), name)
    assert broken_rules(parsed) == []
    assert not MARKUP.search(parsed.text)
    return parsed


def blocks(source: str) -> list[tuple[str, str]]:
    parsed = read(source)
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


PAGE = r"""'\" t
.\" A comment for writers
.de XX
.if t \{ this is a macro \}
..
.ds Aq \(aq
.TH FERRY 1 "2026-01-01" "harbour 1.2"
.SH NAME
ferry \- cross the \fIsound\fP
.SH SYNOPSIS
.B ferry
.RB [ \-qv "] [" \-\-wait
.IR seconds ]
.SH "OPTIONS OF IT"
The options\&:
.TP
.BR \-q ", " \-\-quiet
Say nothing\.
Don\*(Aqt ask.
.sp
Twice \-q says even less.
.TP
.B \-v
.TQ
.B \-\-verbose
Say more.  The default is\c
 \(lqoff\(rq.
.RS
.IP \(bu 2
to the screen
.IP \(bu
to a file
.RE
.PP
After the options.
.nf
  ferry \-q \e
    north
.fi
.SS Files
.IP /etc/ferry 4
Where it is set.
.br
A new line.
.if t .I never seen
.ie n seen on a terminal
.el not seen
See
.BR ferryd (8).
"""


def test_a_page_of_man_macros() -> None:
    parsed = read(PAGE)
    assert parsed.title == "FERRY(1)"
    assert parsed.media_type == "text/troff"
    assert [(block.label, block.level) for block in parsed.blocks if block.kind == "heading"] == [
        ("FERRY(1)", 1),
        ("NAME", 2),
        ("SYNOPSIS", 2),
        ("OPTIONS OF IT", 2),
        ("Files", 3),
    ]
    assert [piece for kind, piece in blocks(PAGE) if kind != "heading"] == [
        "ferry - cross the sound",
        "ferry [-qv] [--wait seconds]",
        "The options:",
        "-q, --quiet\n  Say nothing. Don't ask.\n\n  Twice -q says even less.",
        "-v, --verbose\n  Say more. The default is “off”.\n\n  - to the screen\n  - to a file",
        "After the options.",
        "  ferry -q \\\n    north",
        "/etc/ferry\n  Where it is set.\n  A new line. seen on a terminal See ferryd(8).",
    ]


MDOC = r""".Dd January 1, 2026
.Dt FERRYD 8
.Os
.Sh NAME
.Nm ferryd
.Nd carry boats
.Sh SYNOPSIS
.Nm
.Op Fl dq
.Op Fl p Ar port
.Sh DESCRIPTION
.Nm
runs all day.
See
.Xr ferry 1
and
.Pa /etc/ferry .
.Bl -tag -width Ds
.It Fl p Ar port , Fl Fl port Ns = Ns Ar port
Listen there
.Pq the default is 873 .
.Pp
One only.
.Bl -bullet
.It
first
.It
second
.El
.It Cm quiet
Say
.Dq nothing .
.El
.Bd -literal
ferryd -d
.Ed
.Ex -std
"""


def test_a_page_of_mdoc_macros() -> None:
    parsed = read(MDOC, "ferryd.8")
    assert parsed.title == "FERRYD(8)"
    assert [parsed.text[block.start : block.end] for block in parsed.blocks if block.kind != "heading"] == [
        "ferryd – carry boats",
        "ferryd [-dq] [-p port]",
        "ferryd runs all day. See ferry(1) and /etc/ferry.",
        "-p port, --port=port\n  Listen there (the default is 873).\n\n  One only.\n\n  - first\n  - second",
        "quiet\n  Say “nothing”.",
        "ferryd -d",
        "The ferryd utility exits 0 on success, and >0 if an error occurs.",
    ]


GENERATED = r""".TH FERRY 7
.SH OPTIONS
.PP
\fB\-f\fR, \fB\-\-force\fR
.RS 4
Cross anyway\&.
.sp
.RS 4
.ie n \{\
\h'-04'\(bu\h'+03'\c
.\}
.el \{\
.sp -1
.IP \(bu 2.3
.\}
in a storm
.RE
.RE
.PP
\fB\-n\fR
.RS 4
Do nothing\&.
.RE
"""


def test_terms_as_generators_write_them() -> None:
    assert blocks(GENERATED)[2:] == [
        ("list", "-f, --force\n  Cross anyway.\n\n  - in a storm"),
        ("list", "-n\n  Do nothing."),
    ]


TABLE = """.TH T 5
.SH TABLE
.TS
allbox tab(:);
lb lb
l l.
Name:Value
_
port:T{
the number of
a port
T}
wait:30
.TE
After.
"""


def test_a_table_is_a_table() -> None:
    assert blocks(TABLE)[2:] == [
        ("table", "| Name | Value |\n| --- | --- |\n| port | the number of a port |\n| wait | 30 |"),
        ("paragraph", "After."),
    ]


@pytest.mark.parametrize("name", ["ferry.1", "ferry.3pm", "ferry", "ferry.txt", "ferry.man"])
def test_a_page_is_known_by_its_requests(name: str) -> None:
    assert parse(PAGE.encode(), name).media_type == "text/troff"


def test_a_log_with_the_suffix_of_a_page_is_text() -> None:
    assert parse(b".hidden files\nwere moved at 9:00", "syslog.1").media_type == "text/plain"


def test_a_page_that_points_to_another_one_is_empty_and_nothing_is_opened() -> None:
    with pytest.raises(EmptyDocument, match="no text"):
        parse(b'.\\" A link\n.so /etc/passwd\n.SH\n', "x.1")


HOSTILE = {
    "strings": ".TH A 1\n.ds a xx\n" + "".join(f".ds {n:02} \\*[{n - 1:02}]\\*[{n - 1:02}]\\*a\n" for n in range(90))
    + "\\*[89]" * 15_000,
    "indents": ".TH A 1\n.SH B\n" + "x\n.RS\n" * 6_000,
    "terms": ".TH A 1\n.SH B\n" + ".TP\n" * 15_000 + "x\n",
    "lists": ".Dd x\n.Dt A 1\n.Sh B\n" + ".Bl -tag\n.It x\n" * 6_000,
    "conditions": ".TH A 1\n.SH B\n" + ".if n " * 30_000 + "\n" + ".if t \\{\n" * 15_000,
    "macros": ".TH A 1\n.SH B\n" + ".de x\n" * 15_000,
    "escapes": ".TH A 1\n.SH B\n" + "\\[" * 30_000 + "\\h'" * 30_000 + '.B "' * 30_000,
    "tables": ".TH A 1\n.SH B\n" + ".TS\n;\nl.\na\tT{\n" * 6_000,
    "flags": ".Dd x\n.Dt A 1\n.Sh B\n.Op " + "Op Fl x " * 15_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_ends_in_time(name: str) -> None:
    began = process_time()
    parsed = parse(HOSTILE[name].encode(), "page.1")
    assert process_time() - began < 3
    assert broken_rules(parsed) == []


def test_strings_and_signs_that_a_page_relies_on_are_there() -> None:
    keys = ".IP \\*[Gt]\nType \\*[Lt]RETURN\\*[Gt], a \\(** or \\@ at Coup Fourr\\o'\\(aae'.\n"
    page = f".TH A 6\n.SH NAME\na \\- b\n.SH KEYS\n{keys}"
    assert ("list", ">\n  Type <RETURN>, a * or @ at Coup Fourre.") in blocks(page)


def test_a_macro_ends_at_dots_with_spaces_between_them() -> None:
    opening = ".TH FERRY 1\n.if \\n[.g] \\{\\\n.  am URL\n.    ad l\n.  .\n.  LINKSTYLE blue\n.\\}\n"
    assert blocks(f"{opening}.SH NAME\nferry \\- cross the sound\n") == [
        ("heading", "FERRY(1)"),
        ("heading", "NAME"),
        ("paragraph", "ferry - cross the sound"),
    ]


def test_lines_of_japanese_go_on_without_a_space() -> None:
    assert blocks(".TH FERRY 1\n.SH 名前\nアーキ\nテクチャで\n.B ferry\nを使う。\n 字下げ\n")[2:] == [
        ("paragraph", "アーキテクチャで ferry を使う。\n字下げ")
    ]
