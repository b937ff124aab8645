"""Analytics of a tenant: what was searched and how it went, by period."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ragstone.core.clock import now

if TYPE_CHECKING:
    from tests.serve.http.conftest import Caller, Service


@pytest.mark.req("R-OBS-01", "R-OBS-06")
def test_volumes_times_sources_quality_and_gaps(service: Service, acme: Caller, globex: Caller) -> None:
    document_id = acme.upload("The gate closes at nine.")
    acme.upload("%PDF-1.7 cut", "cut.pdf")
    found = acme("POST", "/v1/search", json={"query": "when does the gate close", "mode": "fast"}).json()
    acme("POST", "/v1/search", json={"query": "when does the gate close"})
    nothing = {"query": "zeppelin", "where": {"connector": "elsewhere"}}
    assert acme("POST", "/v1/search", json=nothing).json()["hits"] == []
    assert acme("POST", "/v1/search", json={"query": "gate", "kb": "nowhere"}).status_code == 404
    chunk_ids = [hit["chunk_id"] for hit in found["hits"]]
    acme("POST", "/v1/feedback", json={"query": "when does the gate close", "chunk_ids": chunk_ids, "vote": "up"})
    told = acme("GET", "/v1/analytics", params={"days": 7}).json()
    assert (told["searches"], told["failed"], told["nothing"]) == (4, 1, 1)
    assert (told["success_rate"], told["no_result_rate"]) == (0.75, pytest.approx(1 / 3))
    assert told["latency"]["searches"] == 3
    assert 0 < told["latency"]["p50"] <= told["latency"]["p95"] <= told["latency"]["p99"]
    assert told["latency"]["mean"] > 0
    assert told["latency_by_mode"]["fast"]["searches"] == 1
    assert told["sources"]["documents"] == {"asked": 3, "helpful": 2, "failed": 1}
    assert told["judged"] == 2
    assert told["quality"]["recall@10"] == 1.0
    assert (told["documents_completed"], told["documents_failed"], told["queued"]) == (1, 1, 0)
    assert told["cost_month"] == 0
    of_kb = acme("GET", "/v1/analytics", params={"kb": "default"}).json()
    assert of_kb["searches"] == 3
    [today] = acme("GET", "/v1/analytics/days").json()["days"]
    assert (today["day"], today["searches"], today["nothing"]) == (now().date().isoformat(), 4, 1)
    [gap] = acme("GET", "/v1/analytics/gaps").json()["gaps"]
    assert (gap["queries"], gap["times"]) == (["zeppelin"], 1)
    assert document_id


def test_a_tenant_sees_nothing_of_another_and_a_limited_key_nothing_at_all(
    service: Service, acme: Caller, globex: Caller
) -> None:
    acme.upload("The gate closes at nine.")
    acme("POST", "/v1/search", json={"query": "gate"})
    told = globex("GET", "/v1/analytics").json()
    assert (told["searches"], told["documents_completed"], told["latency"]["p95"]) == (0, 0, None)
    assert globex("GET", "/v1/analytics/days").json() == {"days": []}
    limited = service.caller("acme", kbs=("other",))
    for path in ("/v1/analytics", "/v1/analytics/days", "/v1/analytics/gaps", "/v1/alerts"):
        assert limited("GET", path).status_code == 403
        assert service.caller("acme", "read", "write")("GET", path).status_code == 403
