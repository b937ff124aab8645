"""Tokens of an OpenID Connect provider in place of API keys.

Needs the `oidc` extra: pip install "ragstone[oidc]". The provider says who a caller is and for which tenant; a tenant
has to exist here, and no token is one of the operator.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.exceptions import HTTPException

from ragstone.core.clock import now
from ragstone.core.errors import InputError, SettingsError
from ragstone.core.ids import check_name, content_hash
from ragstone.core.keys import NAME_CHARS, SCOPES, ApiKey
from ragstone.fetch.calls import WRONG_SHAPE, ReplyTooLarge, ServiceClient, host_of
from ragstone.settings.web import OidcSettings, check_provider_address
from ragstone.stores.control.tenants import SqlTenantBook

logger = logging.getLogger(__name__)
ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
    "Ed448": ("EdDSA",),
}
"""The algorithms of signatures, by the kind or curve of the key: all have a public one."""
LEAST_RSA_BITS = 2048
LEEWAY_SECONDS = 10
"""By how much the clocks of the provider and of this machine may differ."""
FRESH_SECONDS = 3600.0
ASK_SECONDS = 30.0
"""The shortest time between two looks at the provider's keys, however many tokens name one that is not there."""
RETRY_SECONDS = 5.0
"""The same after a look that failed."""
TIMEOUT_SECONDS = 5.0
MOST_BYTES = 1_000_000
MOST_CHARS = 16_384
EVERY_KB = "*"
LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


class IdentityUnavailable(HTTPException):
    """The provider's keys are not known, so no token can be checked."""

    code = "identity_unavailable"

    def __init__(self) -> None:
        headers = {"Retry-After": f"{RETRY_SECONDS:.0f}"}
        super().__init__(503, "tokens cannot be checked now: the identity provider does not answer", headers)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of the provider."""

    key: Any
    algorithms: tuple[str, ...]


class SigningKeys:
    """Keeps the provider's keys for an hour and looks again when a token names another one.

    While the provider does not answer, the keys that are known go on working.
    """

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._client = ServiceClient(TIMEOUT_SECONDS, MOST_BYTES)
        self._keys: dict[str, SigningKey] | None = None
        self._stale = self._next = 0.0
        self._asking = asyncio.Lock()
        self._behind: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> SigningKey | None:
        """Return the key of an id, of which an empty one means the only key; None if there is none."""
        found = self._choose(kid)
        if found is None:
            await self._ask(kid)
            found = self._choose(kid)
        elif self._clock() >= max(self._stale, self._next) and (self._behind is None or self._behind.done()):
            self._behind = asyncio.create_task(self._ask(""))  # nobody waits for it
        if self._keys is None:
            raise IdentityUnavailable
        return found

    async def close(self) -> None:
        if self._behind:
            self._behind.cancel()
            await asyncio.gather(self._behind, return_exceptions=True)
        await self._client.close()

    def _choose(self, kid: str) -> SigningKey | None:
        keys = self._keys or {}
        return keys.get(kid) or (next(iter(keys.values())) if not kid and len(keys) == 1 else None)

    async def _ask(self, kid: str) -> None:
        async with self._asking:
            if self._clock() < self._next or (kid and self._choose(kid)):
                return  # another one has asked meanwhile, or just now
            try:
                self._keys = await self._fetch()
            except (OSError, ReplyTooLarge, *WRONG_SHAPE) as error:
                logger.warning("cannot get the keys of %s: %s", host_of(self._settings.issuer), error)
                self._next = self._clock() + RETRY_SECONDS
                return
            self._next, self._stale = self._clock() + ASK_SECONDS, self._clock() + FRESH_SECONDS

    async def _fetch(self) -> dict[str, SigningKey]:
        address = self._settings.jwks_url or await self._discover()
        found: dict[str, SigningKey] = {}
        for one in (await self._get(address))["keys"]:
            if key := _read_key(one):
                found[str(one.get("kid", ""))] = key
        return found

    async def _discover(self) -> str:
        """Return where the provider says that its keys are."""
        told = await self._get(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        if told["issuer"] != self._settings.issuer:
            raise ValueError("it calls itself by another name than service.oidc.issuer")
        return check_provider_address(told["jwks_uri"])

    async def _get(self, address: str) -> Any:
        reply = await self._client.send("GET", address, headers={"Accept": "application/json"})
        if reply.status != 200:
            raise ConnectionError(f"it answers {reply.status}")
        return json.loads(reply.content)


class TokenReader:
    """Reads tokens as keys: none of them is stored, and each says itself how long it is valid."""

    def __init__(self, settings: OidcSettings, tenants: SqlTenantBook) -> None:
        try:
            import jwt
        except ImportError as error:
            raise SettingsError("service.oidc needs PyJWT", hint='pip install "ragstone[oidc]"') from error
        self._jwt = jwt
        self._settings = settings
        self._tenants = tenants
        self._keys = SigningKeys(settings)

    async def find(self, token: str) -> ApiKey | None:
        """Return the rights that a token gives; None if it is not valid, also for a tenant that there is not."""
        claims = await self._check(token) if len(token) <= MOST_CHARS else None
        return await self._read(claims) if claims else None

    async def close(self) -> None:
        await self._keys.close()

    async def _check(self, token: str) -> Mapping[str, Any] | None:
        """Return the claims of a token that the provider has made for us and that is valid now."""
        try:
            header = self._jwt.get_unverified_header(token)
            kid = header.get("kid", "")
            if not isinstance(kid, str) or "crit" in header:
                return None
            key = await self._keys.find(kid)
            if key is None:
                return None
            claims: Mapping[str, Any] = self._jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            return claims
        except (self._jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            logger.info("a token was refused: %s", type(error).__name__)
            return None

    async def _read(self, claims: Mapping[str, Any]) -> ApiKey | None:
        settings = self._settings
        kbs = _read_kbs(claims, settings.kbs_claim)
        try:
            name = check_name(_claim(claims, settings.tenant_claim), "tenant")
        except (InputError, TypeError):
            return None
        tenant = await self._tenants.get(name)
        if tenant is None or kbs is None:
            return None
        subject = str(claims["sub"])
        is_plain = subject.isprintable() and 0 < len(subject) <= NAME_CHARS
        scopes = _words(_claim(claims, settings.scopes_claim))
        return ApiKey(
            id=f"oidc:{subject if is_plain else content_hash(subject)[:32]}",
            name="",
            tenant=tenant.name,
            tenant_id=tenant.id,
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            kbs=kbs,
            created_at=now(),
            expires_at=datetime.fromtimestamp(min(float(claims["exp"]), LAST_MOMENT), UTC),
        )


def is_token(text: str) -> bool:
    """Return whether this has the form of a signed token; no API key has it."""
    return text.count(".") == 2


def _read_key(found: Mapping[str, Any]) -> SigningKey | None:
    """Return a public key for signatures; None for what is none, or is too weak."""
    import jwt

    allowed = ALGORITHMS.get(str(found.get("kty") if found.get("kty") == "RSA" else found.get("crv")), ())
    if named := found.get("alg"):
        allowed = tuple(name for name in allowed if name == named)
    if not allowed or found.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(dict(found), algorithm=allowed[0]).key
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        logger.warning("a key of the identity provider cannot be read: %s", error)
        return None
    return SigningKey(key, allowed) if getattr(key, "key_size", LEAST_RSA_BITS) >= _least_bits(found) else None


def _least_bits(found: Mapping[str, Any]) -> int:
    return LEAST_RSA_BITS if found.get("kty") == "RSA" else 0


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its name, or by the names on the way to it: `realm_access.roles`."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _words(value: Any) -> tuple[str, ...]:
    """Return the words of a claim, which is a list or one text with blanks."""
    words = value.split() if isinstance(value, str) else value
    return tuple(word for word in words if isinstance(word, str)) if isinstance(words, list) else ()


def _read_kbs(claims: Mapping[str, Any], path: str | None) -> tuple[str, ...] | None:
    """Return the knowledge bases that a token is limited to, empty for all; None if it is for none of them."""
    if path is None:
        return ()
    named = _words(_claim(claims, path))
    if EVERY_KB in named:
        return ()
    return named or None
