"""Identifiers: derived from what they name, so that doing the same thing twice gives the same id."""

from __future__ import annotations

import hashlib
import re
import secrets

from ragstone.core.errors import InputError

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def content_hash(content: bytes | str) -> str:
    """SHA-256 of the content, as hex."""
    return hashlib.sha256(
        content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    ).hexdigest()


def document_id(tenant: str, kb: str, source: str, external_id: str) -> str:
    """Return the one id of (tenant, kb, source, external id): twenty racing uploads agree on it."""
    return _digest("document", tenant, kb, source, external_id)


def chunk_id(document: str, version: int, number: int) -> str:
    """Return the one id of a chunk of a document version, never used again: a tenant's chunks are numbered through."""
    return _digest("chunk", document, str(version), str(number))


def opaque_id() -> str:
    """Return a random id that says nothing about what it names."""
    return secrets.token_hex(16)


def check_name(value: str, what: str) -> str:
    """Return a tenant or kb name that is safe in a path, or refuse it."""
    if not NAME.fullmatch(value):
        raise InputError(
            f"{what} {value!r} is not a valid name",
            hint="use 1 to 63 of a-z, 0-9, '_' and '-', starting with a letter or digit",
        )
    return value


def _digest(*parts: str) -> str:
    # Length prefixes keep ("ab", "c") apart from ("a", "bc").
    joined = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    return hashlib.sha256(joined).hexdigest()[:32]
