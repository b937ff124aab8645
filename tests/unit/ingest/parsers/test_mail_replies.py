"""What is left of a mail when the mail it answers and its signature are taken away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.ingest.parsers.mail.parser import parse_mail

ENGLISH = """\
Nine is fine.

I bring the tea.

Best regards,
Anna Berg
Harbour office, +47 555 0101

On Mon, May 4, 2026 at 9:00 AM Bo Dahl <bo@harbour.example>
wrote:

> Shall we take the ferry at nine?
>
> Bo
>> Older still
"""
GERMAN = """\
Neun Uhr passt.

Viele Grüße aus Bergen
Anna

--
Hafenamt Bergen
Kai 4

Am 04.05.2026 um 09:00 schrieb Bo Dahl <bo@harbour.example>:
> Nehmen wir die Fähre um neun?
"""
INTERLEAVED = """\
Hi Bo,

On Monday Bo wrote:
> Which ferry?
The one at nine.
> And the fare?
- adults nine
- dogs two

Sent from my telephone
"""
OUTLOOK = """\
Agreed.

________________________________
From: Bo Dahl <bo@harbour.example>
Sent: Monday, 4 May 2026 09:00
To: Anna Berg; Clara
 Dora
Subject: Ferry

Shall we take the ferry?
"""
OUTLOOK_GERMAN = """\
Einverstanden.

-----Ursprüngliche Nachricht-----
Von: Bo Dahl
Gesendet: Montag, 4. Mai 2026 09:00
An: Anna Berg
Betreff: Fähre

Nehmen wir die Fähre?
"""
UNMARKED = """\
Oui.

Le lun. 4 mai 2026 à 09:00, Bo Dahl <bo@harbour.example> a écrit :

On prend le bateau ?
"""
SPANISH = """\
Claro.

El lun, 4 may 2026 a las 9:00, Bo (<bo@harbour.example>) escribió:
> ¿A las nueve?
"""
BOTTOM = """\
> Which ferry?

The one at nine.

Thanks,
Anna

PS: dogs travel free.
"""


def body(text: str, subject: str = "Re: Ferry", html: bool = False) -> str:
    kind = "html" if html else "plain"
    raw = f"Subject: {subject}\nContent-Type: text/{kind}; charset=utf-8\n\n{text}"
    head, _, words = parse_mail(raw.encode(), "note.eml").text.partition("\n\n")
    assert head == f"Subject: {subject}"
    return words


@pytest.mark.req("R-NRM-04")
@pytest.mark.parametrize(
    ("text", "own"),
    [
        (ENGLISH, "Nine is fine.\n\nI bring the tea."),
        (GERMAN, "Neun Uhr passt."),
        (OUTLOOK, "Agreed."),
        (OUTLOOK_GERMAN, "Einverstanden."),
        (UNMARKED, "Oui."),
        (SPANISH, "Claro."),
        (BOTTOM, "The one at nine.\n\nPS: dogs travel free."),
    ],
)
def test_quoted_replies_and_signatures_are_removed(text: str, own: str) -> None:
    assert body(text) == own


@pytest.mark.req("R-NRM-04")
def test_a_quoted_page_is_removed_with_its_lists_and_tables() -> None:
    page = (
        "<div>Nine is fine.</div><ul><li>tea</li></ul><div class='gmail_quote'>"
        "<div>On Mon, 4 May 2026 at 09:00, Bo &lt;bo@harbour.example&gt; wrote:<br></div>"
        "<blockquote><p>Which ferry?</p><ul><li>nine</li></ul><blockquote>older</blockquote>"
        "<table><tr><td>a</td></tr></table></blockquote></div><p>After it.</p>"
    )
    assert body(page, html=True) == "Nine is fine.\n\n- tea\n\nAfter it."


def test_a_mail_that_answers_point_by_point_keeps_the_points_it_answers() -> None:
    assert body(INTERLEAVED) == (
        "Hi Bo,\n\n> Which ferry?\n\nThe one at nine.\n\n> And the fare?\n\n- adults nine\n- dogs two"
    )
    trailing = "> Hi Anna,\n>\n> which\n> ferry?\n\nThe one at nine.\n\n> Bring tea.\n>\n> Bo\n\n-- \nAnna"
    assert body(trailing) == "> which\n> ferry?\n\nThe one at nine."
    page = "<blockquote><p>Hi,</p><p>Which ferry?</p></blockquote><p>Nine.</p><blockquote>Bring tea.</blockquote>"
    found = parse_mail(f"Subject: Re: Ferry\nContent-Type: text/html\n\n{page}".encode(), "note.eml")
    assert [(block.kind, found.text[block.start : block.end]) for block in found.blocks[1:]] == [
        ("quote", "> Which ferry?"),
        ("paragraph", "Nine."),
    ]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (ENGLISH, True),
        (OUTLOOK, True),
        (UNMARKED, True),
        (BOTTOM, True),
        (INTERLEAVED, False),
        ("Nine.\n\nAnna", False),
    ],
)
def test_a_quote_that_is_left_out_is_reported(text: str, left_out: bool) -> None:
    found = parse_mail(f"Subject: Re: Ferry\n\n{text}".encode(), "note.eml")
    assert found.warnings == (("text quoted from an earlier mail was left out",) if left_out else ())


def test_outlooks_copied_headers_are_found_in_a_page() -> None:
    page = (
        "<p>Agreed.</p><hr><div><b>From:</b> Bo &lt;bo@harbour.example&gt;<br><b>Sent:</b> Monday<br>"
        "<b>To:</b> Anna<br><b>Subject:</b> Ferry</div><p>Which ferry?</p>"
    )
    assert body(page, html=True) == "Agreed."


@pytest.mark.parametrize(
    "text",
    [
        "Plan for May:\n- one\n- two\n\nThe rest matters too.",
        "Thanks, that works.\n\nThe new pump runs since Tuesday.",
        "Take the ferry at nine.\nTak\nI mean it, take the one that leaves at nine sharp.",
        "Thanks,\nthe pump that you sent runs without a sound since Tuesday morning.",
        "Hello,\n\nBest regards to all,\nhere is the list:\n- one\n- two",
        "From: Bergen\nTo: Voss\n\nThat is the line.",
        "He said so.\n\nOn Monday the board wrote:\n\nWe agree.",
        "x\n-- a dash --\ny",
        "Anna",
        "Thanks,\nAnna",
    ],
)
def test_what_only_looks_like_a_signature_or_a_quote_stays(text: str) -> None:
    assert body(text) == text


def test_a_mail_that_only_quotes_is_kept() -> None:
    assert body("On Mon, 4 May 2026, Bo wrote:\n> Which ferry?\n> At nine?") == (
        "On Mon, 4 May 2026, Bo wrote:\n\nWhich ferry?\nAt nine?"
    )


def test_quotes_of_a_mail_that_answers_nothing_are_content() -> None:
    assert body("The poet says:\n\n> The sea is wide.\n\nSo it is.", "Poem") == (
        "The poet says:\n\nThe sea is wide.\n\nSo it is."
    )


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("Fwd: Ferry", "FYI\n\n---------- Forwarded message ---------\n{head}\n\nWhich ferry?\n\n> Nine.\n"),
        ("Fwd: Ferry", "FYI\n\n> Begin forwarded message:\n>\n{quoted}\n>\n> Which ferry?\n>\n> Nine.\n"),
        ("WG: Ferry", "FYI\n\n-----Ursprüngliche Nachricht-----\n{head}\n\nWhich ferry?\n\nNine.\n"),
        ("Ferry", "FYI\n\n{head}\n\nWhich ferry?\n\nNine.\n"),
    ],
)
def test_forwarded_mail_is_content_whatever_program_sent_it(subject: str, text: str) -> None:
    head = "From: Bo <bo@harbour.example>\nDate: Mon, 4 May 2026 09:00\nSubject: Which\nTo: Anna"
    quoted = "\n".join(f"> {line}" for line in head.split("\n"))
    written = text.format(head=head, quoted=quoted)
    raw = f"Subject: {subject}\nContent-Type: text/plain; charset=utf-8\n\n{written}"
    found = parse_mail(raw.encode(), "note.eml")
    assert found.text.startswith(f"Subject: {subject}\n\nFYI\n\n")
    assert found.text.endswith(f"{head}\n\nWhich ferry?\n\nNine.")
    assert [block.label for block in found.blocks if block.level == 2] == ["Forwarded message: Which"]


def test_each_mail_of_a_forwarded_thread_has_its_heading() -> None:
    head = "From: {0}\nSent: Monday\nTo: All\nSubject: {1}\n\n{1} it is.\n\n"
    text = f"See below.\n\n{head.format('Bo', 'First')}{head.format('Clara', 'Second')}"
    found = parse_mail(f"Subject: FW: Thread\n\n{text}".encode(), "note.eml")
    assert [found.text[block.start : block.end] for block in found.blocks] == [
        "Subject: FW: Thread",
        "See below.",
        "From: Bo\nSent: Monday\nTo: All\nSubject: First",
        "First it is.",
        "From: Clara\nSent: Monday\nTo: All\nSubject: Second",
        "Second it is.",
    ]


LINES = st.sampled_from(
    [
        *ENGLISH.split("\n"),
        *OUTLOOK.split("\n"),
        *GERMAN.split("\n"),
        "---------- Forwarded message ---------",
        "> ",
        ">>",
        "--",
        "- one",
        "On 4 May 2026",
        "wrote:",
    ]
)


@given(st.lists(LINES, max_size=25), st.sampled_from(["Re: x", "Fwd: x", "x"]))
def test_no_mixture_of_marks_empties_a_mail_or_makes_words_up(lines: list[str], subject: str) -> None:
    found = parse_mail(f"Subject: {subject}\n\n".encode() + "\n".join(lines).encode(), "note.eml")
    written = {word for line in lines for word in line.split()}
    kept = [word for word in found.text.removeprefix(f"Subject: {subject}").split() if word.strip(">")]
    assert set(kept) <= written
    assert bool(kept) is any(line.strip("> \t") for line in lines)
