"""Listings that a server gives page by page: they come to an end, whatever the server says."""

from __future__ import annotations

from ragstone.core.errors import SourceError

MAX_PAGES = 20_000


class PageTokens:
    """The tokens of one listing, each of which leads on once."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._seen: set[str] = set()

    def follow(self, token: str) -> str:
        """The token of the next page, or nothing behind the last. Raises `SourceError` for a listing without end."""
        if not token:
            return ""
        if token in self._seen:
            raise SourceError(
                f"{self._who} lists in a circle: a page leads back to one before it", hint=_HINT
            )
        if len(self._seen) == MAX_PAGES:
            raise SourceError(f"{self._who} lists more than {MAX_PAGES:,} pages", hint=_HINT)
        self._seen.add(token)
        return token


_HINT = "check the address of the service, or narrow down what is asked for"
