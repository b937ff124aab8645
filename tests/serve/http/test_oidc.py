"""Tokens of an identity provider: a real one on loopback that publishes its keys, and every way to cheat it."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.testclient import TestClient
from tests.doubles.web import Reply, WebDouble, json_reply
from tests.serve.http.conftest import Caller, Service

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.answers import AnswerEvent, CitationsReady
from ragstone.engine.workspace import Workspace
from ragstone.serve.http import identity, oidc
from ragstone.serve.http.app import build_app
from ragstone.settings.load import load_settings
from ragstone.settings.web import OidcSettings
from ragstone.testing.fakes import FakeEmbedder

KEYS: dict[str, Any] = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "ec": ec.generate_private_key(ec.SECP256R1()),
    "ed": ed25519.Ed25519PrivateKey.generate(),
    "weak": rsa.generate_private_key(65537, 1024),
    "stranger": rsa.generate_private_key(65537, 2048),
}
KINDS: dict[str, Any] = {"ec": jwt.algorithms.ECAlgorithm, "ed": jwt.algorithms.OKPAlgorithm}
ALGORITHMS = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA", "weak": "RS256", "stranger": "RS256"}
SECRET = b"0123456789abcdef0123456789abcdef"
CONFIGURATION, JWKS = "/realm/.well-known/openid-configuration", "/realm/keys"


def published(*names: str) -> list[dict[str, Any]]:
    """Keys as a provider publishes them."""
    kinds = {name: KINDS.get(name, jwt.algorithms.RSAAlgorithm) for name in names}
    return [json.loads(kinds[name].to_jwk(KEYS[name].public_key())) | {"kid": name, "use": "sig"} for name in names]


SHARED = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(SECRET).decode().rstrip("=")}


class Provider:
    """Makes tokens, and serves the keys for them."""

    def __init__(self, web: WebDouble) -> None:
        self.web = web
        self.issuer = web.url("/realm")
        self.work()

    def work(self) -> None:
        self.web.on(CONFIGURATION, json_reply({"issuer": self.issuer, "jwks_uri": self.web.url(JWKS)}))
        self.publish("rsa", "ec", "ed", "weak")

    def publish(self, *names: str) -> None:
        self.web.on(JWKS, json_reply({"keys": [*published(*names), SHARED]}))

    def fail(self) -> None:
        for path in (CONFIGURATION, JWKS):
            self.web.on(path, Reply(status=500))

    @property
    def asked(self) -> int:
        return self.web.paths.count(JWKS)

    def claims(self, **changes: Any) -> dict[str, Any]:
        said = {"iss": self.issuer, "aud": "ragstone", "sub": "alice", "exp": time.time() + 600}
        said |= {"org": {"tenant": "acme"}, "scope": "openid read", "kbs": ["*"]} | changes
        return {name: value for name, value in said.items() if value is not None}

    def token(self, name: str = "rsa", *, header: dict[str, Any] | None = None, **changes: Any) -> str:
        head = {"kid": name} | (header or {})
        with warnings.catch_warnings(action="ignore"):  # of a key that is too short
            return jwt.encode(self.claims(**changes), KEYS[name], ALGORITHMS[name], headers=head)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with WebDouble() as web:
        yield Provider(web)


def settings_of(provider: Provider, data_dir: Any) -> Settings:
    about = {"issuer": provider.issuer, "audience": "ragstone", "tenant_claim": "org.tenant", "kbs_claim": "kbs"}
    return Settings.model_validate({"data_dir": data_dir, "service": {"oidc": about}})


async def fill(engine: Engine, tenant: str, kb: str, text: str) -> None:
    await engine.workspace(tenant).documents.ingest_items([Item("test", kb, kb, text, title=kb)], kb=kb)


@pytest.fixture(scope="module")
def service(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        patch.setattr(identity, "FRESH_SECONDS", 0.0)
        engine = open_engine(settings_of(provider, tmp_path_factory.mktemp("data")))
        with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
            served = Service(client, engine)
            for tenant in ("acme", "globex"):
                served.key(tenant)
                served.run(partial(fill, engine, tenant, "default", f"The tide gate of {tenant} opens at nine."))
            served.run(partial(fill, engine, "acme", "vault", "The vault code is 1234."))
            yield served
            assert client.portal is not None
            client.portal.call(engine.close)


@pytest.fixture(autouse=True)
def no_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """All these tokens come from one address, which would soon be told to wait."""
    monkeypatch.setattr("ragstone.serve.http.rates.WRONG_KEYS", 10_000)


def status(service: Service, token: str) -> int:
    return int(Caller(service, token)("GET", "/v1/kbs").status_code)


@pytest.mark.parametrize("name", ["rsa", "ec", "ed"])
def test_a_token_gives_the_rights_that_it_names(service: Service, provider: Provider, name: str) -> None:
    alice = Caller(service, provider.token(name))
    found = alice("POST", "/v1/search", json={"query": "tide gate"})
    assert "acme" in found.json()["hits"][0]["text"]
    assert alice("POST", "/v1/documents", files={"file": ("a.md", b"# A\n\nText.")}).status_code == 403
    audit = service.run(service.engine.workspace("acme").audit.list)
    assert audit[0].actor == "key:oidc:alice"
    globex = Caller(service, provider.token(name, org={"tenant": "globex"}))
    assert "globex" in globex("POST", "/v1/search", json={"query": "tide gate"}).json()["hits"][0]["text"]


def test_a_token_is_limited_to_the_kbs_that_it_names(service: Service, provider: Provider) -> None:
    limited = Caller(service, provider.token(kbs=["vault"]))
    assert [kb["name"] for kb in limited("GET", "/v1/kbs").json()["kbs"]] == ["vault"]
    assert limited("POST", "/v1/search", json={"query": "gate", "kb": "default"}).status_code == 404
    for none in ([], "", None, 7, {"default": True}):
        assert status(service, provider.token(kbs=none)) == 401, none


def test_an_api_key_works_as_before(service: Service) -> None:
    assert service.caller("acme", "read")("GET", "/v1/kbs").status_code == 200


def signed_with_public_key(provider: Provider) -> str:
    """A token that takes the provider's public key, which everybody knows, for a shared secret."""
    pem = KEYS["rsa"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return forged(provider, {"alg": "HS256", "kid": "rsa"}, pem)


def forged(provider: Provider, header: dict[str, Any], secret: bytes | None) -> str:
    import hashlib
    import hmac

    def pack(part: bytes) -> str:
        return base64.urlsafe_b64encode(part).decode().rstrip("=")

    said = ".".join(pack(json.dumps(part).encode()) for part in (header, provider.claims()))
    signature = hmac.new(secret, said.encode(), hashlib.sha256).digest() if secret is not None else b""
    return f"{said}.{pack(signature)}"


def tampered(provider: Provider) -> str:
    head, _, signature = provider.token().split(".")
    other = json.dumps(provider.claims(scope="read write admin")).encode()
    return f"{head}.{base64.urlsafe_b64encode(other).decode().rstrip('=')}.{signature}"


BAD: dict[str, Callable[[Provider], str]] = {
    "no algorithm": lambda it: forged(it, {"alg": "none", "kid": "rsa"}, None),
    "no algorithm, other spelling": lambda it: forged(it, {"alg": "nOnE", "kid": "rsa"}, None),
    "public key as secret": signed_with_public_key,
    "shared secret of the provider": lambda it: forged(it, {"alg": "HS256", "kid": "shared"}, SECRET),
    "key of another": lambda it: it.token("stranger", header={"kid": "rsa"}),
    "key that is not published": lambda it: it.token("stranger"),
    "key that comes along": lambda it: it.token("stranger", header={"jwk": published("stranger")[0]}),
    "address of keys that comes along": lambda it: it.token("stranger", header={"jku": "http://127.0.0.1:9/keys"}),
    "key that is too short": lambda it: it.token("weak"),
    "no key id among several": lambda it: jwt.encode(it.claims(), KEYS["rsa"], "RS256"),
    "algorithm of another kind of key": lambda it: it.token("rsa", header={"kid": "ec"}),
    "critical extension": lambda it: it.token(header={"crit": ["x"], "x": 1}),
    "tampered": tampered,
    "cut": lambda it: it.token()[:-8],
    "too long": lambda it: it.token(filler="x" * 20_000),
    "no token at all": lambda _: "a.b.c",
    "other audience": lambda it: it.token(aud="another service"),
    "no audience": lambda it: it.token(aud=None),
    "other issuer": lambda it: it.token(iss="https://evil.example"),
    "no subject": lambda it: it.token(sub=None),
    "expired": lambda it: it.token(exp=time.time() - 60),
    "never expires": lambda it: it.token(exp=None),
    "expires when nobody knows": lambda it: it.token(exp=float("inf")),
    "not valid yet": lambda it: it.token(nbf=time.time() + 300),
    "no tenant": lambda it: it.token(org=None),
    "unknown tenant": lambda it: it.token(org={"tenant": "nobody"}),
    "tenant that is no name": lambda it: it.token(org={"tenant": "../acme"}),
    "list of tenants": lambda it: it.token(org={"tenant": ["acme"]}),
    "operator": lambda it: it.token(org={"tenant": ""}, scope="admin"),
}


@pytest.mark.req("R-API-15")
@pytest.mark.parametrize("name", BAD)
def test_no_other_token_is_taken(service: Service, provider: Provider, name: str) -> None:
    refused = Caller(service, BAD[name](provider))("GET", "/v1/kbs")
    assert (refused.status_code, refused.json()["detail"]) == (401, "this key is not valid")


def test_clocks_may_differ_a_little(service: Service, provider: Provider) -> None:
    moment = time.time()
    assert status(service, provider.token(exp=moment - 2, nbf=moment + 2)) == 200


@pytest.mark.parametrize("scope", ["openid", "", None, ["operator", "root", 7], "READ", {"read": True}])
def test_scopes_that_there_are_not_allow_nothing(service: Service, provider: Provider, scope: Any) -> None:
    caller = Caller(service, provider.token(scope=scope))
    assert caller("GET", "/v1/kbs").status_code == 403


def test_no_token_is_one_of_the_operator(service: Service, provider: Provider) -> None:
    admin = Caller(service, provider.token(scope=["read", "write", "admin", "operator"], tenant="", role="operator"))
    assert admin("GET", "/v1/keys").status_code == 200
    assert admin("GET", "/v1/tenants").status_code == 403
    assert admin("POST", "/v1/tenants", json={"name": "mine"}).status_code == 403
    limited = Caller(service, provider.token(scope="read write admin", kbs=["vault"]))
    assert limited("POST", "/v1/keys", json={"scopes": ["admin"]}).status_code == 403


def test_a_token_ends_its_stream_when_it_expires(
    service: Service, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer_never(*_: Any) -> AsyncIterator[AnswerEvent]:
        await asyncio.Event().wait()
        yield CitationsReady(())

    monkeypatch.setattr(Workspace, "stream", answer_never)
    monkeypatch.setattr(oidc, "LEEWAY_SECONDS", 0)
    caller = Caller(service, provider.token(exp=time.time() + 2))
    answer = caller("POST", "/v1/ask", json={"question": "gate?"}, headers={"Accept": "text/event-stream"})
    assert answer.status_code == 200
    assert "the key is not valid any more" in answer.text


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def keys(provider: Provider) -> AsyncIterator[tuple[oidc.SigningKeys, Clock]]:
    clock = Clock()
    about = OidcSettings(issuer=provider.issuer, audience="ragstone", jwks_url=provider.web.url(JWKS))
    opened = oidc.SigningKeys(about, clock)
    provider.publish("rsa")
    provider.web.requests.clear()
    yield opened, clock
    await opened.close()
    provider.work()


async def test_new_keys_are_looked_for_but_not_all_the_time(
    provider: Provider, keys: tuple[oidc.SigningKeys, Clock]
) -> None:
    known, clock = keys
    assert await known.find("rsa")
    provider.publish("rsa", "ec")
    assert [await known.find(f"made up {n}") for n in range(20)] == [None] * 20
    assert (await known.find("ec"), provider.asked) == (None, 1)
    clock.now += oidc.ASK_SECONDS
    found = await asyncio.gather(*(known.find("ec") for _ in range(20)))
    assert all(found)
    assert provider.asked == 2
    provider.publish("ec")
    clock.now += oidc.FRESH_SECONDS
    assert await known.find("rsa"), "nobody waits for keys that are known"
    for _ in range(200):
        await asyncio.sleep(0.01)
        if await known.find("rsa") is None:
            break
    assert (await known.find("rsa"), provider.asked) == (None, 3)


async def test_known_keys_work_while_the_provider_does_not(
    provider: Provider, keys: tuple[oidc.SigningKeys, Clock]
) -> None:
    known, clock = keys
    assert await known.find("rsa")
    provider.fail()
    for _ in range(3):
        clock.now += oidc.FRESH_SECONDS
        assert await known.find("rsa")
        assert await known.find("made up") is None


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500),
        Reply(reset=True),
        Reply(b'{"keys": [', cut=True),
        Reply(b"<html>"),
        Reply(b"[]"),
        Reply(b'{"keys": [7]}'),
        Reply(b"x" * (oidc.MOST_BYTES + 1)),
        Reply(status=302, headers={"location": "http://127.0.0.1:9/"}),
    ],
    ids=["500", "reset", "cut", "no JSON", "other JSON", "no keys", "too large", "elsewhere"],
)
async def test_without_keys_nothing_is_decided(
    provider: Provider, keys: tuple[oidc.SigningKeys, Clock], reply: Reply
) -> None:
    known, clock = keys
    provider.web.on(JWKS, reply)
    for _ in range(3):
        with pytest.raises(oidc.IdentityUnavailable):
            await known.find("rsa")
    assert provider.asked == 1, "a provider that fails is not asked by every request"
    provider.publish("rsa")
    clock.now += oidc.RETRY_SECONDS
    assert await known.find("rsa")


def test_a_provider_that_is_down_is_a_503_and_keys_still_work(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    provider.fail()
    engine = open_engine(settings_of(provider, tmp_path_factory.mktemp("data")))
    try:
        with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
            served = Service(client, engine)
            key = served.caller("acme", "read")
            refused = Caller(served, provider.token())("GET", "/v1/kbs", headers={"Idempotency-Key": "x"})
            assert (refused.status_code, refused.json()["code"]) == (503, "identity_unavailable")
            assert refused.headers["retry-after"] == "5"
            assert key("GET", "/v1/kbs").status_code == 200
            served.run(engine.close)
    finally:
        provider.work()


@pytest.mark.parametrize("issuer", ["http://login.example", "login.example", "ftp://login.example", "https://"])
def test_an_issuer_is_reached_by_https(issuer: str) -> None:
    with pytest.raises(ValueError, match="begins with https"):
        OidcSettings(issuer=issuer, audience="ragstone")


def test_the_settings_come_from_the_environment_as_well() -> None:
    variables = {"RAGSTONE_SERVICE__OIDC__ISSUER": "https://login.example", "RAGSTONE_SERVICE__OIDC__AUDIENCE": "us"}
    found = load_settings(environment=variables).service.oidc
    assert found is not None
    assert (found.issuer, found.audience, found.tenant_claim) == ("https://login.example", "us", "tenant")
