"""The tree of settings: what it takes and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ragstone.settings.tree import Adapter, ChunkingSettings, LimitSettings, Settings
from ragstone.settings.web import OidcSettings, TelemetrySettings, check_provider_address


def test_the_defaults_are_valid_and_frozen() -> None:
    settings = Settings()
    assert (settings.profile, settings.tenant, settings.kb) == ("default", "default", "default")
    assert (settings.retrieval.fusion, settings.retrieval.dense_weight) == ("zscore", 0.7)
    with pytest.raises(ValidationError, match="frozen"):
        settings.tenant = "other"  # type: ignore[misc]


def test_a_plain_string_names_an_adapter() -> None:
    short = Settings.model_validate({"store": {"vectors": "chroma"}})
    long = Settings.model_validate({"store": {"vectors": {"kind": "chroma"}}})
    assert short.store.vectors == long.store.vectors == Adapter(kind="chroma")
    full = Settings.model_validate({"store": {"ledger": {"kind": "postgres", "dsn": "postgresql://u:secret@h/d"}}})
    assert full.store.ledger.dsn is not None
    assert full.store.ledger.dsn.get_secret_value() == "postgresql://u:secret@h/d"


@pytest.mark.req("R-SEC-20")
def test_secrets_do_not_show() -> None:
    raw = {
        "llm": {"api_key": "sk-canary"},
        "store": {"ledger": {"kind": "x", "dsn": "dsn-canary", "api_key": "canary"}},
    }
    settings = Settings.model_validate(raw)
    assert "canary" not in repr(settings)
    assert "canary" not in str(settings.model_dump(mode="json"))


@pytest.mark.parametrize(
    "raw",
    [
        {"retrieva": {}},
        {"retrieval": {"kk": 1}},
        {"retrieval": {"k": 0}},
        {"retrieval": {"fusion": "magic"}},
        {"retrieval": {"dense_weight": 1.1}},
        {"retrieval": {"mode": "slow"}},
        {"profile": "unknown"},
        {"store": {"ledger": {"colour": "x"}}},
        {"store": {"ledger": 7}},
        {"chunking": {"size": 100, "overlap": 100}},
        {"limits": {"parse_seconds": 0}},
    ],
)
def test_a_wrong_key_or_value_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(raw)


def test_overlap_must_be_smaller_than_size() -> None:
    assert ChunkingSettings(size=100, overlap=99).overlap == 99
    with pytest.raises(ValidationError, match=r"overlap \(100\) must be smaller than size \(100\)"):
        ChunkingSettings(size=100, overlap=100)


def test_an_address_of_the_ledger_says_which_ledger_it_is() -> None:
    store = Settings.model_validate({"store": {"ledger": {"dsn": "postgresql://db/x"}}}).store
    assert (store.ledger.kind, store.vectors.kind, store.lexical.kind) == ("postgres", "pgvector", "postgres")
    assert Settings.model_validate({"store": {"ledger": {}}}).store.ledger.kind == "sqlite"


@pytest.mark.parametrize(("index", "kind"), [("vectors", "pgvector"), ("lexical", "postgres")])
def test_an_index_that_lives_in_another_ledger_is_refused(index: str, kind: str) -> None:
    with pytest.raises(ValidationError, match=f"{index} '{kind}' lives in the postgres ledger: set store.ledger too"):
        Settings.model_validate({"store": {index: kind}})


def test_a_kind_of_file_is_the_same_with_a_dot_and_in_capitals() -> None:
    assert LimitSettings(upload_types=(".PDF", " md")).upload_types == ("pdf", "md")


@pytest.mark.parametrize(
    "address", ["https://login.example/", "http://localhost:8080/realm", "http://127.0.0.1:8080", "http://[::1]:8080"]
)
def test_an_identity_provider_is_reached_by_https_or_on_this_machine(address: str) -> None:
    assert check_provider_address(address) == address
    settings = OidcSettings(issuer=address, audience="a", jwks_url=address)
    assert (settings.issuer, settings.jwks_url, settings.audience) == (address, address, "a")
    assert OidcSettings(issuer=address, audience="a").jwks_url is None


@pytest.mark.parametrize(
    "address", ["http://login.example/", "ftp://localhost/", "localhost", "https://", "file:///etc/keys"]
)
@pytest.mark.parametrize("field", ["issuer", "jwks_url"])
def test_an_identity_provider_that_others_could_speak_for_is_refused(field: str, address: str) -> None:
    given = {"issuer": "https://login.example", "audience": "a", field: address}
    with pytest.raises(ValidationError, match="begins with https://"):
        OidcSettings.model_validate(given)


def test_an_identity_provider_needs_an_audience() -> None:
    with pytest.raises(ValidationError, match="audience"):
        OidcSettings(issuer="https://login.example", audience="")


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("https://collector/otlp", "https://collector/otlp"),
    ],
)
def test_a_collector_without_a_path_is_sent_traces_where_it_expects_them(given: str, used: str) -> None:
    assert TelemetrySettings(endpoint=given).endpoint == used
