"""Traces that the service sends to a collector, which decodes them here, hangs or fails."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import ValidationError
from tests.doubles.rest import RestDouble
from tests.doubles.web import Reply, Request
from tests.serve.http.conftest import open_service
from tests.serve.http.test_logs import lines_of, read_logs

from ragstone import Settings
from ragstone.core.errors import SettingsError
from ragstone.serve.http import tracing

if TYPE_CHECKING:
    from tests.serve.http.conftest import Service

QUESTION, TEXT, SECRET = "canaryquestion", "canarydocument", "canary-collector-token"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, NOT_SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}, {"traceparent": f"00-{TRACE}-{PARENT}-00"}


CLOSE_SECONDS = tracing.CLOSE_SECONDS


@pytest.fixture(autouse=True)
def _time_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the last spans sent however slow the machine is."""
    monkeypatch.setattr(tracing, "CLOSE_SECONDS", 60.0)


class Collector(RestDouble):
    """Takes traces as a collector does."""

    def __init__(self) -> None:
        super().__init__(lambda _: Reply(headers={"content-type": "application/x-protobuf"}))

    def received(self) -> list[Any]:
        """Return the spans of all requests."""
        return [
            span
            for request in self.requests
            for resource in decode(request).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


def decode(request: Request) -> Any:
    decoded = ExportTraceServiceRequest()
    decoded.ParseFromString(request.body)
    return decoded


def attributes_of(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as double:
        yield double


@contextmanager
def trace_to(collector: Collector, data_dir: Path, **options: Any) -> Iterator[Service]:
    telemetry = {"endpoint": f"http://{collector.host}", **options}
    settings = Settings.model_validate({"data_dir": data_dir, "service": {"telemetry": telemetry}})
    with open_service(settings) as service:
        yield service


def test_a_request_has_a_span_with_its_search_and_stages_below(
    collector: Collector, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"authorization": f"Bearer {SECRET}"}
    with trace_to(collector, data_dir, headers=headers, service_name="search-eu") as service:
        acme = service.caller("acme")
        acme.upload(f"The gate closes at nine. {TEXT}", f"{TEXT}.md")
        with read_logs(service.engine.settings, monkeypatch) as written:
            query = {"query": f"gate {QUESTION}"}
            searched = acme("POST", "/v1/search", json=query, headers={**SAMPLED, "X-Request-ID": "r-17"})
            acme("GET", f"/v1/documents/{QUESTION}", params={"key": QUESTION})
            service.client.get("/v1/usage", headers={"Authorization": f"Bearer {SECRET}"})
        lines = [line for line in lines_of(written) if line["message"] == "request"]
        callers_key = acme.token
    spans = collector.received()

    [request] = [span for span in spans if span.name == "POST /v1/search"]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes_of(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/search",
        "http.response.status_code": 200,
        "ragstone.request_id": "r-17",
        "ragstone.tenant": "acme",
    }
    [search] = [span for span in spans if span.parent_span_id == request.span_id]
    assert (search.name, attributes_of(search)["ragstone.search.mode"]) == ("search", searched.json()["mode"])
    stages = [span for span in spans if span.parent_span_id == search.span_id]
    assert [span.name for span in stages] == [f"search.{stage['stage']}" for stage in searched.json()["trace"]]
    assert {span.trace_id.hex() for span in (search, *stages)} == {TRACE}
    for stage in stages:
        assert search.start_time_unix_nano <= stage.start_time_unix_nano <= stage.end_time_unix_nano

    [unknown] = [span for span in spans if span.name == "GET /v1/documents/{document_id}"]
    [refused] = [span for span in spans if span.name == "GET /v1/usage"]
    assert attributes_of(unknown)["http.response.status_code"] == 404
    assert "ragstone.tenant" not in attributes_of(refused)
    assert [line["trace_id"] for line in lines] == [span.trace_id.hex() for span in (request, unknown, refused)]

    assert {(one.path, one.headers["authorization"]) for one in collector.requests} == {
        ("/v1/traces", f"Bearer {SECRET}")
    }
    [named] = {
        one.value.string_value
        for sent in collector.requests
        for one in decode(sent).resource_spans[0].resource.attributes
        if one.key == "service.name"
    }
    assert named == "search-eu"
    sent = b"".join(one.body for one in collector.requests)
    assert [word for word in (QUESTION, TEXT, SECRET, callers_key) if word.encode() in sent] == []


def test_the_caller_or_else_the_share_decides_what_is_traced(collector: Collector, data_dir: Path) -> None:
    with trace_to(collector, data_dir, share=0) as service:
        service.client.get("/healthz")
        service.client.get("/healthz", headers=NOT_SAMPLED)
        service.client.get("/healthz", headers=SAMPLED)
        service.client.get("/healthz", headers={"traceparent": f"00-{TRACE}-{'0' * 16}-01"})
    assert [span.trace_id.hex() for span in collector.received()] == [TRACE]


def test_a_collector_that_fails_is_told_of_once(
    collector: Collector, data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "BATCH_SPANS", 1)
    collector.faults.extend([Reply(status=400), Reply(b"no", 403), Reply(cut=True, status=404)])
    with caplog.at_level(logging.INFO), trace_to(collector, data_dir) as service:
        assert [service.client.get("/healthz").status_code for _ in range(6)] == [200] * 6
    told = [record.getMessage() for record in caplog.records if "traces" in record.getMessage()]
    assert told == [
        f"http://{collector.host}/v1/traces takes no traces, they are lost until it does",
        f"http://{collector.host}/v1/traces takes traces again",
    ]
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


def test_a_collector_that_is_down_hinders_nothing(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "CLOSE_SECONDS", 0.1)
    with Collector() as gone:
        pass
    with trace_to(gone, data_dir) as service:
        assert service.client.get("/healthz").status_code == 200


def test_a_collector_that_hangs_hinders_no_request_and_no_stop(
    collector: Collector, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CLOSE_SECONDS < 2
    monkeypatch.setattr(tracing, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(tracing, "SEND_SECONDS", 200.0)
    monkeypatch.setattr(tracing, "BATCH_SPANS", 1)
    collector.faults.append(Reply(hang=True))
    with trace_to(collector, data_dir) as service:
        assert [service.client.get("/healthz").status_code for _ in range(5)] == [200] * 5
        while not collector.requests:
            time.sleep(0.01)
    assert [thread for thread in threading.enumerate() if thread.name == "ragstone-last-spans"]
    assert len(collector.requests) == 1  # it has that one still


def test_spans_that_wait_are_bounded(collector: Collector, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "QUEUED_SPANS", 8)
    monkeypatch.setattr(tracing, "BATCH_SPANS", 4)
    go_on = threading.Event()
    collector._handler = lambda _: Reply() if go_on.wait(60) else Reply(status=500)
    with trace_to(collector, data_dir) as service:
        for number in range(40):
            service.client.get("/healthz", headers={"X-Request-ID": f"r-{number}"})
        go_on.set()
    received = [attributes_of(span)["ragstone.request_id"] for span in collector.received()]
    assert 8 <= len(received) <= 4 + 8
    assert received[-1] == "r-39"


def test_the_package_is_needed_only_where_traces_are_sent(
    collector: Collector, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "ragstone.serve.http.tracing")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with open_service(Settings(data_dir=data_dir)) as service:
        assert service.client.get("/healthz").status_code == 200
    with pytest.raises(SettingsError, match=r"service\.telemetry needs opentelemetry\.sdk\.trace") as caught:
        trace_to(collector, data_dir).__enter__()
    assert caught.value.hint == 'pip install "ragstone[telemetry]"'


@pytest.mark.parametrize(
    "given", [{}, {"endpoint": "collector:4318"}, {"endpoint": "ftp://c"}, {"endpoint": "http://ada:pw@c:4318"}]
)
def test_settings_that_lead_nowhere_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"service": {"telemetry": given}})


def test_an_address_keeps_its_path_and_headers_are_secret() -> None:
    telemetry = {"endpoint": "https://c.example/otlp/v1/traces", "headers": {"api-key": SECRET}}
    settings = Settings.model_validate({"service": {"telemetry": telemetry}})
    assert settings.service.telemetry is not None
    assert settings.service.telemetry.endpoint == "https://c.example/otlp/v1/traces"
    assert SECRET not in json.dumps(settings.model_dump(mode="json"))
