"""Web pages, read one by one. What each was like is kept, so that a page that has not changed costs little."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Protocol
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from ragstone.core.clock import canonical, now, parse_mail_date
from ragstone.core.errors import AddressRefused, FetchError, SourceError
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json, Page, failure_of
from ragstone.fetch.exchange import Fetched
from ragstone.fetch.polite import PoliteFetcher
from ragstone.fetch.urls import canonical_url, redact_url
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.files.walk import as_tuple
from ragstone.ingest.sources.paging import PageTurn
from ragstone.settings.base import SettingsModel

GONE = (404, 410)
# Encodings that the web really uses: others of Python's are slow on hostile input or are no encodings of text.
CHARSET = re.compile(
    r"iso-8859-\d{1,2}|latin-?1|windows-\d{3,4}|cp\d{3,4}|koi8-[ru]|macintosh|shift[_-]jis|euc-(?:jp|kr)"
    r"|iso-2022-jp|gb(?:2312|k|18030)|big5|tis-620|utf-16(?:le|be)?",
    re.IGNORECASE,
)
Words = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]
"""Some texts as settings hold them; one may be written without a list."""


def _check_address(address: str) -> str:
    try:
        return canonical_url(address)
    except AddressRefused as problem:
        raise ValueError(f"{problem}; {problem.hint}") from problem


WebAddress = Annotated[str, AfterValidator(_check_address)]
"""An http or https address as settings hold it, in its one spelling."""


class SupportsGet(Protocol):
    """The fetcher, polite or not."""

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class PageState:
    """The state of a page when it was last read."""

    hash: str
    scraped: str
    etag: str = ""
    modified: str = ""
    lastmod: str = ""
    """The date that a sitemap gave for it then."""


@dataclass(frozen=True, slots=True)
class PageResult:
    """The result of reading a page: no entry when it has not changed, `gone` when it no longer exists."""

    entry: Item | Failure | None = None
    gone: bool = False
    fetched: Fetched | None = None


class PageReader:
    """Reads pages for one source. Its memory is the source's cursor."""

    def __init__(self, name: str, gets: SupportsGet, cursor: Json) -> None:
        self._name = name
        self._gets = gets
        self._states = {url: PageState(**state) for url, state in ((cursor or {}).get("pages") or {}).items()}

    @property
    def cursor(self) -> Json:
        """Return the state to remember: only what is known, since there may be thousands of pages."""
        return {
            "pages": {
                url: {name: value for name, value in asdict(state).items() if value}
                for url, state in self._states.items()
            }
        }

    def lastmod(self, url: str) -> str:
        """Return the date that a sitemap gave for the page when it was last read."""
        state = self._states.get(url)
        return state.lastmod if state else ""

    def keep_only(self, urls: frozenset[str]) -> None:
        """Forget pages that are no longer of concern."""
        self._states = {url: state for url, state in self._states.items() if url in urls}

    async def read(self, url: str, *, lastmod: str = "") -> PageResult:
        """Fetch a page, if it has changed since it was last read."""
        known = self._states.get(url)
        headers = conditions(known.etag, known.modified) if known else {}
        try:
            fetched = await self._gets.get(url, headers=headers)
        except FetchError as problem:
            if problem.status in GONE:
                self._states.pop(url, None)
                return PageResult(gone=True)
            return PageResult(failure_of(redact_url(url), problem))
        if fetched.status == 304:
            if known:
                self._states[url] = replace(known, lastmod=lastmod)
            return PageResult(fetched=fetched)
        return PageResult(self.item(url, fetched, lastmod=lastmod), fetched=fetched)

    def item(self, url: str, fetched: Fetched, *, lastmod: str = "") -> Item:
        """Return the document that a page is.

        The date of scraping is that of the first time this content was seen. Were it the date of the last visit,
        a page would differ from itself every day and be ingested again each time.
        """
        known = self._states.get(url)
        digest = content_hash(fetched.content)[:32]
        scraped = known.scraped if known and known.hash == digest else canonical(now())
        self._states[url] = PageState(
            hash=digest,
            scraped=scraped,
            etag=fetched.headers.get("etag", ""),
            modified=fetched.headers.get("last-modified", ""),
            lastmod=lastmod,
        )
        return Item(
            source=self._name,
            external_id=url,
            uri=fetched.url,
            content=in_known_charset(fetched),
            metadata={
                "source_type": "web",
                "url": fetched.url,
                "scraped_date": scraped,
                "domain": urlsplit(fetched.url).hostname or "",
            },
            modified_at=parse_mail_date(fetched.headers.get("last-modified", "")),
            media_type=media_type(fetched),
        )


def conditions(etag: str | None, modified: str | None) -> dict[str, str]:
    """Return the headers that ask for a page only if it has changed since."""
    asked = {"if-none-match": etag, "if-modified-since": modified}
    return {name: value for name, value in asked.items() if value}


def read_json(fetched: Fetched, base: str) -> Any:
    """Return the JSON of an answer. Raises `SourceError` that names the service at `base`."""
    try:
        return json.loads(fetched.content)
    except (ValueError, RecursionError) as problem:
        raise unreadable_answer(base) from problem


def unreadable_answer(base: str) -> SourceError:
    """Return the error for an answer that is not what a service documents."""
    return SourceError(f"{redact_url(base)} sent an answer that cannot be read", hint="check base_url")


def media_type(fetched: Fetched) -> str:
    """Return the media type that the server declares, without parameters."""
    return fetched.headers.get("content-type", "").partition(";")[0].strip().lower()


def in_known_charset(fetched: Fetched) -> bytes:
    """Return the content, converted to marked UTF-8 if only the header tells its encoding: the header stays here."""
    charset = declared_charset(fetched)
    try:
        fetched.content.decode()
    except UnicodeDecodeError:
        pass
    else:
        return fetched.content
    try:
        return codecs.BOM_UTF8 + fetched.content.decode(charset).encode() if charset else fetched.content
    except (UnicodeError, LookupError):
        return fetched.content


def declared_charset(fetched: Fetched) -> str:
    """Return the encoding that the header names, if it is one that may be used."""
    for parameter in fetched.headers.get("content-type", "").split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip("\"'")
        if name.strip().lower() == "charset" and CHARSET.fullmatch(charset):
            return charset
    return ""


class WebConfig(SettingsModel):
    """The pages to read."""

    urls: Annotated[tuple[WebAddress, ...], Field(min_length=1, max_length=10_000)]


class WebSource(StatelessSource):
    """Reads the pages of a list. Somebody named each of them, so no robots.txt is asked; hosts still get time."""

    def __init__(self, config: WebConfig, name: str, context: SourceContext) -> None:
        self._urls = tuple(dict.fromkeys(config.urls))
        self._name = name
        self._fetcher = PoliteFetcher(context.fetcher, robots=False)

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield the pages that have changed; those that are gone, and those no longer in the list, are removed."""
        reader = PageReader(self._name, self._fetcher, cursor)
        reader.keep_only(frozenset(self._urls))
        known = frozenset((cursor or {}).get("pages") or {})
        gone: set[str] = set()
        entries: list[Item | Failure] = []
        missing: list[str] = []
        turn = PageTurn()
        for url in self._urls:
            reading = await reader.read(url)
            if reading.entry:
                entries.append(reading.entry)
            if reading.gone:
                gone.add(url)
            if reading.gone and url in known:
                missing.append(url)
            elif reading.gone:
                entries.append(Failure(url, "not_found", f"there is no page at {redact_url(url)}"))
            is_last = url == self._urls[-1]
            if is_last or turn.due(len(entries) + len(missing)):
                listed = frozenset(self._urls) - gone if is_last else None
                yield Page(tuple(entries), reader.cursor, tuple(missing), listed)
                entries, missing, turn = [], [], PageTurn()
