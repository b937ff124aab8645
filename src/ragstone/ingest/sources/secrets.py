"""Secrets from the environment in a source's addresses, kept out of everything that is stored and shown.

A setting such as `https://host/feed?token=${TOKEN}` becomes an address, and from there an external id, a citation, a
cursor. All of these say `${TOKEN}` where the value stood. Content stays as it is, and so does the name of a host.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from urllib.parse import quote, quote_plus

from ragstone.core.errors import AddressRefused, RagstoneError
from ragstone.core.protocols import Source
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.fetch.urls import canonical_url

LEAST = 4
"""Shorter values stand in too many words by chance."""
_HOST = re.compile(r"\s*https?://[^/?#]*", re.IGNORECASE)
# Without a `$`: what looks like a reference must never pass as the name of a host.
_KEPT = r"(?P<host>https?://[^/?#\s$]*)"
_ESCAPE = "${}"


class SecretMask:
    """Replaces secret values by the names of their variables."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def learn(self, text: str, taken: Iterable[tuple[str, int, int]]) -> None:
        """Hide what an address has from variables, each of which is given with its place; a host is no secret."""
        host = _HOST.match(text)
        if host is None:
            return
        for name, start, end in taken:
            known = [reference for reference in self._names.values() if re.match(rf"\$\{{{name}[~}}]", reference)]
            for spelling in _spellings(text[max(start, host.end()) : end].strip("/?#&")):
                if spelling not in self._names:
                    known.append(f"${{{name}~{len(known) + 1}}}" if known else f"${{{name}}}")
                    self._names[spelling] = known[-1]

    def hide(self, text: str) -> str:
        """Return the text with names in place of values; what only looks like a name is made different from one."""

        def name(found: re.Match[str]) -> str:
            return found["host"] or self._names.get(found[0], _ESCAPE)

        return self._values.sub(name, text)

    def show(self, text: str) -> str:
        """Return the text that `hide` was given."""
        values = {name: value for value, name in self._names.items()}
        return self._references.sub(lambda found: "${" if found[0] == _ESCAPE else values[found[0]], text)

    def hide_in_addresses(self, text: str) -> str:
        """Return an address with names in place of values; other text may hold a value by chance and stays as it is."""
        return self.hide(text) if "://" in text else text

    def contains_secret(self, value: Json) -> bool:
        """Return whether a text or anything in a value holds a secret."""
        if isinstance(value, str):
            rest = self._references.sub("\n", value)
            return any(found[0] in self._names for found in self._values.finditer(rest))
        if isinstance(value, Mapping):
            return any(self.contains_secret(key) or self.contains_secret(inner) for key, inner in value.items())
        return isinstance(value, list | tuple) and any(self.contains_secret(inner) for inner in value)

    @cached_property
    def _values(self) -> re.Pattern[str]:
        longest = sorted(self._names, key=len, reverse=True)
        return re.compile("|".join((_KEPT, *map(re.escape, longest), r"\$\{")))

    @cached_property
    def _references(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, (*self._names.values(), _ESCAPE))))


def _spellings(value: str) -> list[str]:
    """Return the spellings that a value may have in an address, the likeliest first."""
    found = [value, quote(value, safe=""), quote_plus(value)] if len(value) >= LEAST else []
    for start in ("https://h/", "https://h/?") if found else ():
        with suppress(AddressRefused):
            found.insert(0, canonical_url(start + value).partition(start)[2])
    return [spelling for spelling in dict.fromkeys(found) if len(spelling) >= LEAST]


class MaskedSource:
    """A source whose addresses hold what may not be stored."""

    def __init__(self, source: Source, mask: SecretMask) -> None:
        self._source = source
        self.mask = mask

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield the pages of the source. Raises what it raises, with no secret in the message."""
        # A cursor with a secret in it is from before secrets were hidden: start again from the beginning.
        known = None if self.mask.contains_secret(cursor) else _map_text(cursor, self.mask.show)
        try:
            async for page in self._source.fetch(known):
                yield self._mask_page(page)
        except RagstoneError as error:
            error.args = (self.mask.hide_in_addresses(str(error)),)
            error.hint = self.mask.hide_in_addresses(error.hint)
            raise

    async def close(self) -> None:
        await self._source.close()

    def _mask_page(self, page: Page) -> Page:
        hide = self.mask.hide_in_addresses
        return Page(
            tuple(self._entry(entry) for entry in page.items),
            _map_text(page.cursor, self.mask.hide),
            removed=tuple(map(hide, page.removed)),
            listed=None if page.listed is None else frozenset(map(hide, page.listed)),
            leaving=tuple(map(hide, page.leaving)),
        )

    def _entry(self, entry: Item | Failure) -> Item | Failure:
        hide = self.mask.hide_in_addresses
        if isinstance(entry, Failure):
            return replace(entry, uri=hide(entry.uri), error=hide(entry.error), hint=hide(entry.hint))
        return replace(
            entry,
            external_id=hide(entry.external_id),
            uri=hide(entry.uri),
            title=hide(entry.title),
            metadata=_map_text(entry.metadata, hide),
        )


def _map_text(value: Json, change: Callable[[str], str]) -> Json:
    """Return the value with each text in it changed, keys as well."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _map_text(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_map_text(inner, change) for inner in value]
    return value
