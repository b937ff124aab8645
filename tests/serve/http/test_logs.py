"""The log of the service: who asked for what and how it went, and no secret, query or document."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr
from tests.doubles.openai import OpenAIDouble
from tests.doubles.openai import json_reply as llm_reply
from tests.doubles.rest import RestDouble
from tests.doubles.web import json_reply

from ragstone import Settings
from ragstone.core.audit import acting_as, working_for
from ragstone.serve import logs

if TYPE_CHECKING:
    from tests.serve.http.conftest import Caller, Service

SECRETS = {"llm": "canary-llm-key-93", "web": "canary-web-key-57", "password": "canary-password-21"}
QUESTION, TEXT = "canaryquestion", "canarydocument"


@contextmanager
def read_logs(settings: Settings, monkeypatch: pytest.MonkeyPatch, *, as_json: bool = True) -> Iterator[io.StringIO]:
    """Collect the lines that are written to stderr."""
    written = io.StringIO()
    monkeypatch.setattr(logs.sys, "stderr", written)
    with logs.write_logs(settings, as_json=as_json):
        yield written


def lines_of(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


@pytest.mark.req("R-OBS-25", "R-OBS-26", "R-OBS-27")
def test_requests_searches_and_ingestion_are_logged_with_their_tenant(
    service: Service, acme: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_logs(settings, monkeypatch) as written:
        acme.upload("The gate closes at nine.")
        acme("POST", "/v1/search", json={"query": QUESTION}, headers={"X-Request-ID": "r-17"})
        acme("GET", "/v1/documents/unknown")
        service.client.get("/v1/usage")
    lines = lines_of(written)
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    [search] = [line for line in lines if line["message"] == "search"]
    assert (search["request_id"], search["tenant"], search["results"], search["level"]) == ("r-17", "acme", 1, "info")
    assert search["actor"].startswith("key:")
    [ingested] = [line for line in lines if line["message"] == "ingested documents"]
    assert (ingested["tenant"], ingested["stored"], ingested["failed"]) == ("acme", 1, 0)
    assert ingested["seconds"] > 0
    requests = [line for line in lines if line["message"] == "request"]
    told = [(line["method"], line["route"], line["status"], line.get("tenant")) for line in requests]
    assert told == [
        ("POST", "/v1/documents", 202, "acme"),
        ("POST", "/v1/search", 200, "acme"),
        ("GET", "/v1/documents/{document_id}", 404, "acme"),
        ("GET", "/v1/usage", 401, None),
    ]
    assert all(line["request_id"] for line in requests)


def test_lines_carry_the_trace_that_the_caller_names(
    acme: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.upload("The gate closes at nine.")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = [f"00-{trace}-00f067aa0ba902b7-01", f"00-{'0' * 32}-00f067aa0ba902b7-01", "00-canary", f"ff-{trace}-1-01"]
    with read_logs(settings, monkeypatch) as written:
        for header in headers:
            acme("POST", "/v1/search", json={"query": "gate"}, headers={"traceparent": header})
    told = [line.get("trace_id") for line in lines_of(written) if line["message"] in ("search", "request")]
    assert told == [trace, trace, None, None, None, None, None, None]


@pytest.fixture
def services(settings: Settings) -> Iterator[Settings]:
    """A web search and a language model that fail, and repeat in their errors what they were sent."""

    def fail(request: Any) -> Any:
        return json_reply({"error": f"{request.headers} {request.path}"}, 500)

    with (
        RestDouble(fail) as brave,
        OpenAIDouble(lambda request: llm_reply({"error": {"message": f"{TEXT} {QUESTION} {request}"}}, 400)) as llm,
    ):
        yield settings.model_validate(
            {
                "data_dir": settings.data_dir,
                "web": {"kind": "brave", "url": f"http://{brave.host}/search", "api_key": SECRETS["web"], "retries": 0},
                "llm": {"model": "m", "base_url": llm.url, "api_key": SECRETS["llm"], "retries": 0},
            }
        )


@pytest.fixture
def failing(services: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    from starlette.testclient import TestClient
    from tests.serve.http.conftest import Service

    from ragstone import open_engine
    from ragstone.serve.http.app import build_app
    from ragstone.testing.fakes import FakeEmbedder

    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    engine = open_engine(services)
    with TestClient(build_app(engine, worker=False), raise_server_exceptions=False) as client:
        yield Service(client, engine)
        assert client.portal is not None
        client.portal.call(engine.close)


def operations(service: Service) -> list[tuple[str, str]]:
    """Every route of the specification, each with a canary in place of its ids."""
    paths = service.client.get("/openapi.json").json()["paths"]
    parts = [
        (method.upper(), path, described) for path, methods in paths.items() for method, described in methods.items()
    ]
    return [(method, path.replace("{", "canarypath").replace("}", "")) for method, path, _ in parts]


@pytest.mark.req("R-SEC-20")
def test_canaries_are_in_no_log_line_no_error_and_no_job(
    failing: Service, services: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = failing.caller("acme")
    replies = []
    with read_logs(services, monkeypatch) as written:
        acme.upload(f"The gate closes at nine. {TEXT}")
        acme.upload(f"%PDF-1.7 {TEXT} {SECRETS['password']}", "cut.pdf")
        question = {"question": f"When does the gate close, {QUESTION}?", "web": True}
        replies += [
            acme("POST", "/v1/search", json={"query": QUESTION, "web": True}),
            acme("POST", "/v1/ask", json=question),
            acme("POST", "/v1/ask", json=question, headers={"Accept": "text/event-stream"}),
            acme("POST", "/v1/verify", json={"claim": QUESTION}),
            acme("POST", "/v1/documents/urls", json={"urls": [f"http://ada:{SECRETS['password']}@127.0.0.1:9/a"]}),
            acme(
                "POST",
                "/v1/sources",
                json={
                    "kind": "imap",
                    "name": "mail",
                    "config": {"host": "127.0.0.1", "user": "ada", "password": SECRETS["password"]},
                },
            ),
            acme("POST", "/v1/sources/mail/sync"),
        ]
        failing.run(lambda: failing.engine.worker().run(until_idle=True))
        for method, path in operations(failing):
            body = {QUESTION: TEXT, "query": QUESTION, "claim": QUESTION}
            replies.append(acme(method, path, json=body, params={"key": QUESTION}))
            replies.append(failing.client.request(method, path, headers={"Authorization": "Bearer rgs_canary"}))

        async def break_down(*_: object) -> None:
            raise RuntimeError(f"{QUESTION} {TEXT} {SECRETS['llm']} {acme.token}")

        monkeypatch.setattr("ragstone.engine.search.Search.search", break_down)
        broken = acme("POST", "/v1/search", json={"query": QUESTION})
        assert broken.status_code == 500
        replies.append(broken)
    logged = written.getvalue()
    assert "RuntimeError" in logged
    assert "Internet search failed" in logged
    assert "answering without the LLM" in logged
    canaries = [*SECRETS.values(), QUESTION, TEXT, acme.token, "canarypath", "rgs_canary"]
    assert [line for line in logged.splitlines() if any(canary in line for canary in canaries)] == []
    secrets = [*SECRETS.values(), acme.token]
    errors = [reply.text for reply in replies]
    assert len(errors) > 80
    assert [text for text in errors if any(secret in text for secret in secrets)] == []
    assert [row for row in job_rows(services.data_dir) if any(secret in row for secret in secrets)] == []


def job_rows(folder: Path) -> list[str]:
    found = []
    for ledger in folder.glob("tenants/*/ledger.db"):
        with closing(sqlite3.connect(ledger)) as connection:
            for table in ("jobs", "notices"):
                found += [str(row) for row in connection.execute(f"SELECT * FROM {table}")]
    assert found
    return found


def test_secrets_are_hidden_wherever_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(databases={"erp": SecretStr("postgresql://ada:geheim42@db/erp")})
    key = f"rgs_{'0' * 16}_{'A' * 43}"
    with read_logs(settings, monkeypatch) as written:
        logger = logging.getLogger("ragstone.test")
        logger.warning("cannot open %s", "postgresql://ada:geheim42@db/erp")
        logger.warning("cannot open mysql://bob:other-secret@db/x with %s", key)
        logger.warning("sent", extra={"facts": {"header": "Bearer abcdefgh", "count": 3}})
    first, second, third = lines_of(written)
    assert first["message"] == "cannot open [hidden]"
    assert second["message"] == "cannot open mysql://[hidden]@db/x with [hidden]"
    assert (third["header"], third["count"]) == ("Bearer [hidden]", 3)


def test_people_get_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with read_logs(Settings(), monkeypatch, as_json=False) as written, working_for("acme"), acting_as("ada", "r1"):
        logging.getLogger("ragstone.test").info("a\nb", extra={"facts": {"ms": 3}})
    line = written.getvalue()
    assert line[8:] == " INFO a b request_id=r1 tenant=acme actor=ada ms=3\n"
