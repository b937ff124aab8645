"""Settings of the web search and of what is remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from ragstone.core.search import MOST_WEB_RESULTS
from ragstone.settings.base import SettingsModel


class WebSettings(SettingsModel):
    """A web search engine, and how much it is asked."""

    kind: Literal["none", "searxng", "brave", "tavily", "google", "fixture"] = "none"
    url: str | None = None
    """Its address; the other engines have fixed ones."""
    api_key: SecretStr | None = None
    engine_id: str | None = None
    """The id of a Google programmable search engine (`cx`)."""
    path: Path | None = None
    """The file of a fixture: a JSON object with lists of results by query."""
    k: int = Field(default=3, ge=1, le=MOST_WEB_RESULTS)
    timeout: float = Field(default=5.0, gt=0, le=60)
    """Seconds that a web search may take, with all its attempts."""
    retries: int = Field(default=1, ge=0, le=5)
    cache_hours: float = Field(default=24.0, ge=0, le=8760)
    """Hours that results are kept; 0 keeps none."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> WebSettings:
        needed = {
            "searxng": ("url",),
            "brave": ("api_key",),
            "tavily": ("api_key",),
            "google": ("api_key", "engine_id"),
            "fixture": ("path",),
        }
        for name in needed.get(self.kind, ()):
            if getattr(self, name) is None:
                raise ValueError(f"web search with {self.kind} needs web.{name}")
        return self


class CacheSettings(SettingsModel):
    """Caches of searches and answers, by tenant and valid while the kb does not change."""

    search_seconds: float = Field(default=60.0, ge=0, le=600)
    """Seconds for which the same search gets the same result; 0 keeps none. Names of tenants rest for longer."""
    memory_mb: int = Field(default=32, ge=1)
    redis: SecretStr | None = None
    """The address of a Redis server by which processes share search results: `redis://HOST:6379/0`."""
    answers: bool = False
    """Give an answer again to nearly the same question while every passage it cites is unchanged."""
    answer_similarity: float = Field(default=0.95, ge=0.5, le=1)
    """Cosine from which two questions are nearly the same."""


def check_provider_address(address: str) -> str:
    """Return an address by which nobody on the way can change what is asked for, or raise `ValueError`."""
    parts = urlsplit(address)
    is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or is_local):
        raise ValueError("an address of the identity provider begins with https://")
    return address


class OidcSettings(SettingsModel):
    """An OpenID Connect provider whose tokens are taken in place of API keys."""

    issuer: str
    """The address by which the provider names itself in tokens."""
    audience: str = Field(min_length=1)
    """The name of this service in tokens."""
    jwks_url: str | None = None
    """The address of the provider's public keys; by default the provider is asked for it."""
    tenant_claim: str = Field(default="tenant", min_length=1)
    """The claim that names the tenant; `a.b` is `b` within `a`."""
    scopes_claim: str = Field(default="scope", min_length=1)
    """The claim with the scopes read, write and admin; other words in it mean nothing."""
    kbs_claim: str | None = Field(default=None, min_length=1)
    """The claim with the knowledge bases that a token is limited to, `*` for all; by default there is no limit."""

    @field_validator("issuer", "jwks_url")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        return None if value is None else check_provider_address(value)


class AlertSettings(SettingsModel):
    """Alerts about what the service and its tenants do; `targets` with an `alert` add rules of their own."""

    webhook: str | None = None
    """Address that is told when an alert begins or ends."""
    webhook_secret: SecretStr | None = None
    """Signs the webhook's body: `X-Ragstone-Signature: sha256=…`."""
    every_seconds: float = Field(default=60.0, gt=0)
    minutes: int = Field(default=15, ge=1, le=1440)
    """The time before now whose searches count."""
    latency_ms: float = Field(default=500.0, gt=0)
    """An alert begins when 95 % of the searches do not take less; a target for `p95_ms` goes before it."""
    failed_documents: float = Field(default=0.1, ge=0, le=1)
    """The share of a day's documents that may fail."""
    failed_web_searches: float = Field(default=0.1, ge=0, le=1)
    budget: float = Field(default=0.8, gt=0)
    """The share of its monthly budget that a tenant may spend without an alert."""


class TelemetrySettings(SettingsModel):
    """A collector of OpenTelemetry that is sent a trace of requests and searches, without their texts."""

    endpoint: str
    """Its address for OTLP over HTTP; without a path `/v1/traces` is added."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers that the collector wants, such as `authorization`."""
    service_name: str = Field(default="ragstone", min_length=1)
    share: float = Field(default=1.0, ge=0, le=1)
    """The share of requests that is traced; a caller whose `traceparent` says so decides for its own."""

    @field_validator("endpoint")
    @classmethod
    def _complete_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address of a collector begins with http:// or https://")
        if "@" in parts.netloc:
            raise ValueError("leave user and password out of the address, and set service.telemetry.headers")
        return value if parts.path.strip("/") else parts._replace(path="/v1/traces").geturl()


class ServiceSettings(SettingsModel):
    """The HTTP service."""

    host: str = "127.0.0.1"
    """The address to listen at; 0.0.0.0 for all of the machine."""
    port: int = Field(default=8000, ge=0, le=65535)
    """0 takes a free one."""
    hosts: tuple[str, ...] = ()
    """Names by which clients reach `/mcp`, besides those of this machine and `host`."""
    mcp_calls: int = Field(default=5, ge=1)
    """Tool calls that a session at `/mcp` may make before a pause of a minute."""
    oidc: OidcSettings | None = None
    """Take tokens of an identity provider as well as API keys."""
    worker: bool = True
    """Do queued jobs in the process of the service; without it run `ragstone worker` beside it."""
    log: Literal["auto", "json", "text"] = "auto"
    """The form of log lines of the service and of workers: `auto` is text on a terminal and JSON elsewhere."""
    metrics: Literal["operator", "loopback"] = "operator"
    """Callers that `/metrics` answers: those with a key of the operator, or anyone on this machine as well."""
    telemetry: TelemetrySettings | None = None
    """Send traces to a collector of OpenTelemetry."""
