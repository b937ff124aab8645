from __future__ import annotations

import pytest
from tests.unit.ingest.enrich.texts import block_texts, document

from ragstone.ingest.enrich.boilerplate import EDGE, MAX_CHARS, trim_boilerplate
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.web.html import parse_html

ARTICLE = (
    "# The new ferry",
    "The line has bought a third ship. It will sail from May.",
    "- two decks\n- four cranes",
    "    ferry.leave()",
)
NOTICES = (
    "We use cookies to improve your experience. By continuing you accept our privacy policy.",
    "This website uses cookies. Accept all | Decline",
    "Wir verwenden Cookies. Mit der Nutzung stimmen Sie unserer Datenschutzerklärung zu, die Sie akzeptieren.",
    "Nous utilisons des cookies. Accepter",
    "Utilizamos cookies. Aceptar",
    "Subscribe to our newsletter and never miss a story!",
    "Sign up for updates in your inbox",
    "Share this article",
    "Share on Facebook, Twitter or LinkedIn",
    "Facebook | Twitter | WhatsApp",
    "Follow us on Mastodon",
    "© 2026 Kestrel Sound Ferries. All rights reserved.",
    "Copyright 2026 Kestrel Sound Ferries",
    "Privacy Policy | Terms of Service | Contact",
    "- Impressum\n- Datenschutz\n- AGB",
    "Advertisement",
    "Skip to main content",
    "Read more →",
    "12 comments",
    "# Leave a comment",
)


@pytest.mark.req("R-NRM-03")
@pytest.mark.parametrize("notice", NOTICES)
def test_boilerplate_goes_and_the_article_stays(notice: str) -> None:
    for parts in ((notice, *ARTICLE), (*ARTICLE, notice)):
        trimmed = trim_boilerplate(document(*parts, title="Ferry", author="Ada"))
        assert trimmed == document(*ARTICLE, title="Ferry", author="Ada")
        assert broken_rules(trimmed) == []


@pytest.mark.req("R-NRM-03")
def test_a_page_keeps_only_what_is_read() -> None:
    page = b"""<html><head><title>Ferry</title></head><body><nav>Home News</nav>
    <div>We use cookies to analyse traffic. Accept or change your settings.</div>
    <div><h1>The new ferry</h1><p>The line has bought a third ship.</p></div>
    <div>Share on Facebook</div><h3>Related articles</h3><ul><li>Old ferry sold</li></ul>
    <p>\xc2\xa9 2026 The Sound Gazette. All rights reserved.</p></body></html>"""
    trimmed = trim_boilerplate(parse_html(page, "ferry.html"))
    assert block_texts(trimmed) == ["The new ferry", "The line has bought a third ship."]
    assert broken_rules(trimmed) == []


@pytest.mark.parametrize(
    "paragraph",
    [
        "We use cookies to keep the session token of our example application.",
        "Cookies are small files; browsers let you accept or decline them, as the settings page shows.",
        "Subscribe to the topic before you publish to it.",
        "Share prices rose on Tuesday, and with them the mood on the trading floor in Port Arden.",
        "Read more about pumps in chapter four.",
        "The contact sheet lists privacy and terms.",
        "The newsletter of 1912 is in the archive.",
        "Facebook bought WhatsApp in 2014.",
        "Share the load with two pumps.",
        "Print the ticket, or show it on a telephone.",
    ],
)
def test_prose_about_such_things_stays(paragraph: str) -> None:
    parsed = document("# Web", paragraph, "More.")
    assert trim_boilerplate(parsed) is parsed


def test_footers_go_at_the_edges_only() -> None:
    middle = [f"Paragraph {n} of the licence." for n in range(EDGE)]
    parsed = document(*middle, "© 2026 Kestrel Sound Ferries. All rights reserved.", *middle)
    assert trim_boilerplate(parsed) is parsed


def test_related_articles_go_with_their_list_but_not_with_what_follows() -> None:
    parsed = document("The ship is here.", "# You may also like", "- Old ferry sold", "- Kept list", "Kept text.")
    assert block_texts(trim_boilerplate(parsed)) == ["The ship is here.", "- Kept list", "Kept text."]


@pytest.mark.parametrize("parts", [NOTICES[: 2 * EDGE], ("# The new ferry", "Share this article"), ("Advertisement",)])
def test_a_document_is_never_left_empty(parts: tuple[str, ...]) -> None:
    parsed = document(*parts)
    assert trim_boilerplate(parsed) is parsed


def test_long_paragraphs_code_and_tables_are_not_looked_at() -> None:
    long = "We use cookies, which you accept by continuing. " + "word " * MAX_CHARS
    parsed = document("Text.", long, "    # Copyright 2026 Kestrel. All rights reserved.", "| Privacy | Terms |")
    assert trim_boilerplate(parsed) is parsed


def test_pages_and_headings_keep_what_they_are() -> None:
    parsed = document("Advertisement", "# The new ferry", "It sails.")
    heading, paragraph = trim_boilerplate(parsed).blocks
    assert (heading.kind, heading.level, heading.label) == ("heading", 2, "The new ferry")
    assert (paragraph.start, paragraph.end) == (15, 24)
