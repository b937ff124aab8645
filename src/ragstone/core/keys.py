"""API keys: what a caller over the network may do, and for which tenant."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

from ragstone.core.errors import InputError
from ragstone.core.ids import check_name

KeyScope = Literal["read", "write", "admin"]
SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)
TOKEN = re.compile(r"rgs_([0-9a-f]{16})_([0-9A-Za-z_-]{43})")
NAME_CHARS = 63
MOST_PER_MINUTE = 1_000_000


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored: its secret part is known to its holder alone."""

    id: str
    """The part of the key that may be shown."""
    name: str
    tenant: str
    """The tenant that it is for; empty for a key of the operator, which is for none of them."""
    tenant_id: str
    scopes: tuple[KeyScope, ...]
    kbs: tuple[str, ...]
    """The knowledge bases that it is limited to; empty for all of the tenant."""
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    per_minute: int | None = None
    """Requests that it may make in a clock minute; None for no limit."""

    def is_valid(self, moment: datetime) -> bool:
        """Return whether the key is accepted at a time."""
        return self.revoked_at is None and (self.expires_at is None or moment < self.expires_at)


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A key to be made."""

    tenant: str
    """Empty for a key of the operator."""
    scopes: tuple[KeyScope, ...]
    name: str = ""
    kbs: tuple[str, ...] = ()
    expires_at: datetime | None = None
    per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class RequestAllowance:
    """The requests of a limited key in the minute that runs."""

    limit: int
    left: int
    seconds: int
    """Until the next minute begins."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key that was made, with its whole text: it is shown once and not stored."""

    key: ApiKey
    token: str


def new_token() -> tuple[str, str, str]:
    """Return the id of a new key, its whole text, and what is stored of its secret part."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    return key_id, f"rgs_{key_id}_{secret}", secret_hash(secret)


def secret_hash(secret: str) -> str:
    # The secret has 256 random bits, so there is nothing to guess that a slow hash would protect.
    return hashlib.sha256(secret.encode()).hexdigest()


def is_secret(secret: str, stored: str) -> bool:
    """Return whether this is the secret that was stored, in the same time whatever it is."""
    return hmac.compare_digest(secret_hash(secret), stored)


def check_key(wanted: NewApiKey, moment: datetime) -> NewApiKey:
    """Return the key to be made, or raise `InputError` if it could never be used."""
    read_scopes(wanted.scopes)
    if not wanted.tenant and (wanted.scopes != ("admin",) or wanted.kbs):
        raise InputError("a key without a tenant has the scope admin and no knowledge bases", hint="name a tenant")
    for kb in wanted.kbs:
        check_name(kb, "knowledge base")
    if len(wanted.name) > NAME_CHARS or not wanted.name.isprintable():
        raise InputError(f"a key's name has at most {NAME_CHARS} printable characters", hint="choose a shorter one")
    if wanted.expires_at is not None and wanted.expires_at <= moment:
        raise InputError(f"{wanted.expires_at} is over already", hint="choose a time that is to come")
    if wanted.per_minute is not None and not 1 <= wanted.per_minute <= MOST_PER_MINUTE:
        raise InputError(
            f"a key cannot have {wanted.per_minute} requests per minute", hint=f"give 1 to {MOST_PER_MINUTE:,}"
        )
    return replace(wanted, kbs=tuple(dict.fromkeys(wanted.kbs)))


def read_scopes(names: Sequence[str]) -> tuple[KeyScope, ...]:
    """Return the scopes of these names, once each and in their usual order, or raise `InputError`."""
    unknown = [name for name in names if name not in SCOPES]
    if unknown or not names:
        said = f"there is no scope '{unknown[0]:.40}'" if unknown else "a key needs a scope"
        raise InputError(said, hint=f"choose from: {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in names)
