"""Cleaning of search results: text without markup, web addresses only, dates of one form."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import urlsplit

from ragstone.core.clock import canonical, parse_mail_date, parse_moment
from ragstone.core.web import WebResult

LONGEST_QUERY, MOST_WORDS = 400, 50
"""What the strictest engine takes; more words find less."""
LONGEST_TITLE, LONGEST_SNIPPET, LONGEST_URL = 300, 2000, 2000
READ = 4
"""Times the limit that are looked at, so that markup does not crowd out the words."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
TAG = re.compile(r"<[^<>]{0,200}>")
UNSEEN = ("Cf", "Cs", "Co")
JOINERS = "\u200c\u200d"
"""Unseen too, but some scripts cannot be written without them."""


def fit_query(query: str) -> str:
    """As much of a query as every engine takes, cut between words."""
    words = query.split()[:MOST_WORDS]
    while len(words) > 1 and len(" ".join(words)) > LONGEST_QUERY:
        words.pop()
    return " ".join(words)[:LONGEST_QUERY]


def make_result(
    provider: str, title: object, url: object, snippet: object, date: object = None, *, markup: bool = False
) -> WebResult | None:
    """One result, or None when it has no web address."""
    if not isinstance(url, str) or not _is_page(url):
        return None
    return WebResult(
        title=_plain(title, LONGEST_TITLE, markup=markup),
        url=url,
        snippet=_plain(snippet, LONGEST_SNIPPET, markup=markup),
        date=_day(date),
        provider=provider,
    )


def first_results(found: Iterable[WebResult | None], k: int) -> list[WebResult]:
    """Return the first k that are results, each page once."""
    pages: dict[str, WebResult] = {}
    for page in found:
        if page is not None:
            pages.setdefault(page.url, page)
        if len(pages) == k:
            break
    return list(pages.values())


def _is_page(url: str) -> bool:
    if len(url) > LONGEST_URL or any(character <= " " or character == "\x7f" for character in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _plain(value: object, limit: int, *, markup: bool) -> str:
    if not isinstance(value, str):
        return ""
    text = value[: limit * READ]
    if markup:
        text = html.unescape(TAG.sub("", text))
    seen = "".join(
        character for character in text if character in JOINERS or unicodedata.category(character) not in UNSEEN
    )
    words = " ".join(CONTROL.sub(" ", seen).split())
    return words if len(words) <= limit else words[:limit].rpartition(" ")[0] or words[:limit]


def _day(value: object) -> str:
    if not isinstance(value, str):
        return ""
    moment = parse_moment(value[:64]) or parse_mail_date(value[:64])
    return canonical(moment)[:10] if moment else ""
