"""Addresses: read strictly, written in one form, shown without what is secret."""

from __future__ import annotations

import re
from functools import lru_cache

import httpx2

from ragstone.core.errors import AddressRefused

MAX_LENGTH = 8000
PORTS = {"http": 80, "https": 443}
_SHOWN_LENGTH = 300
_UNPRINTABLE = re.compile(r"[^\x21-\x7e\u00a1-\u1fff\u2c00-\ud7ff]")
_USER = re.compile(r"//[^/?#]*@")
_SECRET = re.compile(r"key|token|secret|pass|pwd|sig|auth|cred|code|session|jwt", re.IGNORECASE)
_TRACKING = re.compile(r"(?:utm_\w+|fbclid|gclid|msclkid|mc_[ce]id)(?:=.*)?", re.IGNORECASE | re.DOTALL)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def parse_url(text: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """Return an http or https address, without its fragment; anything else is refused."""
    if len(text) > MAX_LENGTH:
        raise AddressRefused(f"{redact_url(text)} is longer than {MAX_LENGTH} characters", hint="shorten the address")
    try:
        url = base.join(text) if base else httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError) as problem:  # ValueError: a lone surrogate, an impossible port
        raise AddressRefused(f"{redact_url(text)} is not a valid address", hint="check how it is written") from problem
    if url.scheme not in PORTS:
        raise AddressRefused(f"{redact_url(text)} is not an http or https address", hint="use http:// or https://")
    if url.userinfo:
        raise AddressRefused(
            f"{redact_url(text)} carries a user name", hint="leave user and password out of the address"
        )
    if not url.host.strip(".") or not 1 <= port_of(url) <= 65535:
        raise AddressRefused(f"{redact_url(text)} names no host or an impossible port", hint="check how it is written")
    return url.copy_with(fragment=None)


def port_of(url: httpx2.URL) -> int:
    """Return the port that a connection goes to."""
    return PORTS[url.scheme] if url.port is None else url.port


def canonical_url(text: str, base: str | None = None) -> str:
    """Return one spelling for one page: no fragment, no tracking, no needless port or escape."""
    url = parse_url(text, _base(base) if base else None)
    path, question, query = url.raw_path.decode("ascii").partition("?")
    kept = [part for part in query.split("&") if part and not _TRACKING.fullmatch(part)]
    target = _plain(path or "/") + (question + _plain("&".join(kept)) if kept else "")
    return str(url.copy_with(host=url.host.rstrip("."), raw_path=target.encode("ascii")))


def canonical_link(href: str, base: str | None = None) -> str:
    """Return the canonical address of a link; empty for one that leads to no page."""
    try:
        return canonical_url(href, base)
    except AddressRefused:
        return ""


@lru_cache(maxsize=64)
def _base(address: str) -> httpx2.URL:
    # A page has hundreds of links, and all are read from the same place.
    return parse_url(address)


def redact_url(address: str) -> str:
    """Return an address as it may stand in a message: no user, no fragment, no value that looks like a secret."""
    text = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", address[:MAX_LENGTH].partition("#")[0])
    place, question, query = _USER.sub("//…@", text).partition("?")
    if question:
        place += question + "&".join(_mask_parameter(part) for part in query.split("&"))
    return place if len(place) <= _SHOWN_LENGTH else place[:_SHOWN_LENGTH] + "…"


def _mask_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}=…" if equals and _SECRET.search(name) else parameter


def _plain(text: str) -> str:
    """Write escapes one way: those that need none are taken back, the others are in capitals."""

    def plain(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    return _ESCAPE.sub(plain, text)
