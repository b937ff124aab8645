"""What the service measures of itself, and who may read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ragstone import Settings
from ragstone.engine.monitoring.instruments import MOST_SERIES, SECONDS, Counter, Histogram, render
from ragstone.engine.monitoring.metrics import Metrics

if TYPE_CHECKING:
    from tests.serve.http.conftest import Caller, Service

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+)\})? (-?[0-9.e+-]+|\+Inf)')


def read_metrics(text: str) -> dict[tuple[str, str], float]:
    """Read the text format; a line that is not of it fails the test."""
    kinds: dict[str, str] = {}
    samples = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            found = SAMPLE.fullmatch(line)
            assert found, line
            family = re.sub(r"_(bucket|sum|count)$", "", found[1])
            assert found[1] in kinds or kinds[family] == "histogram", line
            samples[found[1], found[2] or ""] = float(found[3])
    assert text.endswith("\n")
    return samples


@pytest.fixture
def operator(service: Service) -> Caller:
    return service.caller("", "admin")


@pytest.mark.req("R-OBS-01", "R-OBS-02", "R-OBS-03", "R-OBS-04", "R-OBS-05")
def test_what_is_done_is_measured(acme: Caller, operator: Caller) -> None:
    acme.upload("# Gate\n\nThe gate closes at nine.")
    acme.upload("%PDF-1.7 cut", "cut.pdf")
    for _ in range(2):
        assert acme("POST", "/v1/search", json={"query": "when does the gate close", "mode": "fast"}).json()["hits"]
    assert acme("POST", "/v1/search", json={"query": "x", "kb": "nowhere"}).status_code == 404
    nothing = {"query": "gate", "mode": "fast", "where": {"source": "elsewhere"}}
    assert acme("POST", "/v1/search", json=nothing).json()["hits"] == []
    assert acme("POST", "/v1/ask", json={"question": "When does the gate close?"}).status_code == 200
    assert acme("POST", "/v1/verify", json={"claim": "The gate closes at nine."}).status_code == 200
    replied = operator("GET", "/metrics")
    assert replied.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    seen = read_metrics(replied.text)
    assert seen["ragstone_search_seconds_count", 'mode="fast"'] == 3
    assert seen["ragstone_search_seconds_bucket", 'mode="fast",le="+Inf"'] == 3
    assert seen["ragstone_searches_total", 'mode="fast",outcome="found"'] == 2
    assert seen["ragstone_searches_total", 'mode="fast",outcome="nothing"'] == 1
    assert sum(value for (name, labels), value in seen.items() if "searches_total" in name and "failed" in labels) >= 1
    assert seen["ragstone_cache_lookups_total", 'cache="search",result="hit"'] >= 1
    assert seen["ragstone_search_stage_seconds_count", 'mode="fast",stage="fuse"'] == 2
    assert seen["ragstone_source_searches_total", 'source="documents",result="ok"'] >= 3
    assert seen["ragstone_embedding_seconds_count", 'role="query"'] >= 2
    assert seen["ragstone_embedding_seconds_count", 'role="document"'] >= 1
    assert seen["ragstone_answer_seconds_count", 'action="ask"'] == 1
    assert seen["ragstone_answer_seconds_count", 'action="verify"'] == 1
    assert seen["ragstone_documents_total", 'result="stored"'] == 1
    assert seen["ragstone_documents_total", 'result="failed"'] == 1
    assert seen["ragstone_ingest_stage_seconds_total", 'stage="chunk"'] > 0
    assert seen["ragstone_jobs", 'state="failed"'] == 1
    assert seen["ragstone_jobs", 'state="pending"'] == 0
    assert seen["ragstone_http_requests_total", 'method="POST",route="/v1/search",status="200"'] == 3
    assert seen["ragstone_http_requests_total", 'method="POST",route="/v1/search",status="404"'] == 1
    assert seen["process_resident_memory_bytes", ""] > 1_000_000


def test_requests_are_counted_by_the_template_of_their_route(acme: Caller, operator: Caller) -> None:
    for number in range(3):
        acme("GET", f"/v1/documents/{number}")
        acme("GET", f"/nowhere/{number}")
    acme("PROPFIND", "/v1/documents/1")
    text = operator("GET", "/metrics").text
    seen = read_metrics(text)
    assert seen["ragstone_http_requests_total", 'method="GET",route="/v1/documents/{document_id}",status="404"'] == 3
    assert seen["ragstone_http_requests_total", 'method="GET",route="(none)",status="404"'] == 3
    assert "PROPFIND" not in text


def test_tenants_and_strangers_do_not_see_the_metrics(service: Service, acme: Caller) -> None:
    assert service.client.get("/metrics").status_code == 401
    assert acme("GET", "/metrics").status_code == 403


def test_a_setting_opens_them_to_this_machine_alone(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Settings.model_validate({"service": {"metrics": "loopback"}}).service
    monkeypatch.setattr(
        type(service.engine), "settings", service.engine.settings.model_copy(update={"service": opened})
    )
    assert service.client.get("/metrics").status_code == 401  # the test's client has no address
    service.client._transport.client = ("127.0.0.1", 5000)  # type: ignore[attr-defined]
    assert service.client.get("/metrics").status_code == 200
    assert service.client.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"}).status_code == 401
    service.client._transport.client = ("203.0.113.9", 5000)  # type: ignore[attr-defined]
    assert service.client.get("/metrics").status_code == 401


def test_costs_are_counted_by_tenant_and_the_number_of_tenants_is_bounded() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.record_cost(f"tenant-{number}", "llm", 0.25)
    seen = read_metrics(metrics.render())
    costs = {labels: value for (name, labels), value in seen.items() if name == "ragstone_cost_usd_total"}
    assert costs['tenant="tenant-0",kind="llm"'] == 0.25
    assert len(costs) == 201
    assert costs['tenant="other",kind="other"'] == 0.25 * 800


def test_a_histogram_counts_a_time_in_every_bucket_above_it() -> None:
    times = Histogram("seconds", "Times.", ("mode",))
    for seconds in (0.0, 0.005, 0.4, 100.0):
        times.observe("fast", seconds=seconds)
    seen = read_metrics(render([times]))
    buckets = {labels: int(value) for (name, labels), value in seen.items() if name == "seconds_bucket"}
    assert list(buckets.values()) == [2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4]
    assert len(buckets) == len(SECONDS) + 1
    assert seen["seconds_count", 'mode="fast"'] == 4
    assert seen["seconds_sum", 'mode="fast"'] == 100.405


def test_labels_are_escaped_and_series_bounded() -> None:
    counter = Counter("things_total", "Things.", ("name",))
    counter.add('a "b"\n\\c')
    for number in range(2 * MOST_SERIES):
        counter.add(str(number))
    text = render([counter])
    assert 'things_total{name="a \\"b\\"\\n\\\\c"} 1' in text.splitlines()
    assert len(read_metrics(text)) == MOST_SERIES + 1
