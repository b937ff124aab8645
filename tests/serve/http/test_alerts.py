"""Alerts over recorded figures: when they begin and end, who sees them, and how the webhook hears of them."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr
from tests.conformance import postgres_server
from tests.doubles.rest import RestDouble
from tests.doubles.web import Reply, json_reply

from ragstone import Settings
from ragstone.core.activity import LoggedSearch
from ragstone.core.clock import now
from ragstone.core.errors import StoreError
from ragstone.core.model_types import Bill
from ragstone.core.search import SourceKind
from ragstone.core.tenants import Quotas
from ragstone.engine.monitoring import alerts, health
from ragstone.engine.monitoring.alerts import AlertWatch, rules_of
from ragstone.fetch.webhook import SIGNATURE
from ragstone.settings.load import load_settings
from ragstone.stores.activity.retrieval_log import RetrievalLog
from ragstone.stores.control.alerts import MOST_ATTEMPTS, MOST_MESSAGES, RuleFinding, SqlAlertBook
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger

if TYPE_CHECKING:
    from tests.serve.http.conftest import Caller, Service

postgres_databases = postgres_server.postgres_databases
START = datetime(2026, 1, 31, tzinfo=UTC)


def watch_of(service: Service) -> AlertWatch:
    return service.engine._components.alert_watch


def log_searches(service: Service, *latencies: float, web: bool = False, problem: str = "") -> None:
    """Have searches of these times in the retrieval log of acme."""

    async def write() -> None:
        tenant = await service.engine.tenants.get("acme")
        assert tenant is not None
        asked: tuple[SourceKind, ...] = ("documents", "internet") if web else ("documents",)
        searches = [
            LoggedSearch(
                now(), "default", "q", "balanced", ms, 1, 1.0, None, 1.0,
                tenant_id=tenant.id, sources_queried=asked, error_message=problem,
            )
            for ms in latencies
        ]  # fmt: skip
        await RetrievalLog(service.engine._components.ledger, "acme").add(searches, now() - timedelta(days=90))

    service.run(write)


def evaluate(service: Service) -> list[tuple[str, str, str]]:
    changed = service.run(watch_of(service).evaluate)
    return [(alert.tenant, alert.rule, alert.state) for alert in changed]


@pytest.mark.req("R-OBS-11")
def test_slow_searches_fire_once_and_end_when_they_are_fast_again(service: Service, acme: Caller) -> None:
    acme.upload("The gate closes at nine.")
    log_searches(service, *[100.0] * 20)
    assert evaluate(service) == []
    log_searches(service, *[501.0] * 3)
    assert evaluate(service) == [("acme", "p95_ms", "firing")]
    assert evaluate(service) == []  # it fires already
    log_searches(service, *[100.0] * 200)
    assert evaluate(service) == [("acme", "p95_ms", "resolved")]
    assert evaluate(service) == []


@pytest.mark.req("R-OBS-12")
def test_documents_that_fail_fire_above_a_tenth(service: Service, acme: Caller) -> None:
    for number in range(9):
        acme.upload(f"The gate closes at {number}.", f"{number}.md")
    acme.upload("%PDF-1.7 cut", "cut.pdf")
    assert evaluate(service) == []  # a tenth is not above a tenth
    acme.upload("%PDF-1.7 cut too", "cut-2.pdf")
    assert evaluate(service) == [("acme", "documents.failed", "firing")]


@pytest.mark.req("R-OBS-14")
def test_web_searches_that_fail_fire(service: Service, acme: Caller) -> None:
    acme.upload("The gate closes at nine.")
    log_searches(service, *[1.0] * 9, web=True)
    assert evaluate(service) == []
    log_searches(service, 1.0, 1.0, web=True, problem="web: the engine answered 500")
    assert evaluate(service) == [("acme", "web.failed", "firing")]


@pytest.mark.req("R-OBS-15")
def test_costs_near_the_budget_fire(service: Service, acme: Caller) -> None:
    async def spend(usd: float) -> None:
        await service.engine.tenants.charge_bill("acme", Bill(llm=usd))

    service.run(lambda: service.engine.tenants.set_quotas("acme", Quotas(cost_per_month=10.0)))
    service.run(lambda: spend(8.0))
    assert evaluate(service) == []
    service.run(lambda: spend(0.5))
    assert evaluate(service) == [("acme", "budget", "firing")]


@pytest.mark.req("R-OBS-13")
def test_a_vector_store_that_is_away_fires_for_the_operator(
    service: Service, acme: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = True

    async def look() -> None:
        if failing:
            raise StoreError("the vector database does not answer")

    components = service.engine._components
    away = SimpleNamespace(provider=SimpleNamespace(health=look))
    monkeypatch.setattr(components, "stores", replace(components.stores, derived=away))
    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    assert evaluate(service) == [("", "vectors.unavailable", "firing")]
    assert acme("GET", "/v1/alerts").json() == {"alerts": []}
    operator = service.caller("", "admin")
    assert [alert["rule"] for alert in operator("GET", "/v1/alerts").json()["alerts"]] == ["vectors.unavailable"]
    failing = False
    assert evaluate(service) == [("", "vectors.unavailable", "resolved")]
    monkeypatch.undo()


@pytest.mark.req("R-OBS-16")
def test_rules_of_a_profile_have_its_thresholds() -> None:
    def bounds(profile: str) -> dict[str, float | None]:
        return {name: rule.alert for name, rule in rules_of(load_settings(overrides={"profile": profile})).items()}

    ghostwriter, kosmos, default = bounds("ghostwriter"), bounds("kosmos"), bounds("default")
    assert ghostwriter | {"p95_ms": 1000, "recall@10": 0.6, "p@5": 0.7, "mrr@10": 0.7, "ndcg@10": 0.7} == ghostwriter
    assert ghostwriter["ingest.success"] == 0.95
    assert kosmos | {"p50_ms": 200, "p99_ms": 1000, "recall@10": 0.7, "mrr@10": 0.5} == kosmos
    assert default == {"p95_ms": 500, "documents.failed": 0.1, "web.failed": 0.1, "budget": 0.8}
    figures = {"recall@10": 0.59, "p50_ms": 150.0, "p99_ms": 1001.0}
    rules = rules_of(load_settings(overrides={"profile": "kosmos"}))
    judged = {found.rule: found.alarming for found in alerts.judge_figures(figures, rules)}
    assert judged == {"recall@10": True, "p50_ms": False, "p99_ms": True}


@pytest.mark.req("R-OBS-16")
def test_the_quality_of_judged_searches_fires_for_a_tenant_of_the_profile(service: Service, acme: Caller) -> None:
    acme.upload("The gate closes at nine.")
    other = acme.upload("Porpoises swim.", "porpoises.md")
    service.run(lambda: service.engine.tenants.set_settings("acme", {"profile": "ghostwriter"}))
    acme_workspace = service.engine.workspace("acme")
    missed = "where is the harbour office and who works there"
    service.run(lambda: acme_workspace.feedback.add_golden(missed, [other]))
    for _ in range(5):
        acme("POST", "/v1/search", json={"query": missed, "k": 1, "arms": "lexical"})
    assert ("acme", "recall@10", "firing") in evaluate(service)


def test_a_tenant_sees_its_own_alerts_and_the_operator_all(service: Service, acme: Caller, globex: Caller) -> None:
    acme.upload("The gate closes at nine.")
    log_searches(service, *[900.0] * 9)
    evaluate(service)
    [own] = acme("GET", "/v1/alerts").json()["alerts"]
    assert (own["rule"], own["state"], own["value"], own["threshold"]) == ("p95_ms", "firing", 900, 500)
    assert globex("GET", "/v1/alerts").json() == {"alerts": []}
    assert [alert["tenant"] for alert in service.caller("", "admin")("GET", "/v1/alerts").json()["alerts"]] == ["acme"]
    assert service.caller("acme", "read")("GET", "/v1/alerts").status_code == 403
    service.run(lambda: service.engine.erase_tenant("acme"))
    assert service.caller("", "admin")("GET", "/v1/alerts").json() == {"alerts": []}


@pytest.fixture
def hook() -> Iterator[RestDouble]:
    with RestDouble(lambda _: json_reply({})) as double:
        yield double


@pytest.fixture
def settings(data_dir: Path, hook: RestDouble) -> Settings:
    told = {"webhook": f"http://{hook.host}/alerts", "webhook_secret": SecretStr("s3cret-of-the-hook")}
    return Settings.model_validate({"data_dir": data_dir, "alerts": told})


def test_the_webhook_is_told_at_least_once_signed_and_again_after_a_failure(
    service: Service, acme: Caller, hook: RestDouble
) -> None:
    acme.upload("The gate closes at nine.")
    log_searches(service, *[900.0] * 9)
    evaluate(service)
    hook.faults.append(Reply(status=500))
    book = service.engine._components.alert_book
    moment = now()
    book._clock = lambda: moment
    service.run(watch_of(service).send_messages)
    service.run(watch_of(service).send_messages)
    assert len(hook.requests) == 1  # not again at once
    moment += timedelta(seconds=10)
    service.run(watch_of(service).send_messages)
    service.run(watch_of(service).send_messages)
    failed, taken = hook.requests
    assert failed.body == taken.body
    signed = hmac.new(b"s3cret-of-the-hook", taken.body, hashlib.sha256).hexdigest()
    assert {name.lower(): value for name, value in taken.headers.items()}[SIGNATURE.lower()] == f"sha256={signed}"
    told = json.loads(taken.body)
    assert (told["rule"], told["tenant"], told["state"], told["value"]) == ("p95_ms", "acme", "firing", 900)


LEDGERS = {
    "sqlite": SqliteLedger,
    "postgres": lambda folder: PostgresLedger(postgres_server.server(18).database(folder), folder),
}


@pytest.mark.parametrize("kind", LEDGERS)
async def test_two_processes_fire_once_and_share_the_messages(kind: str, tmp_path: Path) -> None:
    moment = START
    ledgers: list[SqlLedger] = [LEDGERS[kind](tmp_path) for _ in range(2)]
    first, second = (SqlAlertBook(ledger, lambda: moment) for ledger in ledgers)
    bad, good = [RuleFinding("p95_ms", 900.0, 500.0, True)], [RuleFinding("p95_ms", 100.0, 500.0, False)]
    try:
        assert await first.update("t1", "acme", good, tell=True) == []
        assert len(await first.update("t1", "acme", bad, tell=True)) == 1
        assert await second.update("t1", "acme", bad, tell=True) == []
        message = await first.take_message()
        assert message is not None
        assert await second.take_message() is None  # it is with the first
        moment += timedelta(seconds=61)
        again = await second.take_message()  # whoever had it died
        assert again is not None
        assert (again.id, again.attempts) == (message.id, 2)
        await second.end_message(again, sent=True)
        moment += timedelta(days=1)
        assert await first.take_message() is None
        assert [alert.state for alert in await second.update("t1", "acme", good, tell=False)] == ["resolved"]
        assert [alert.state for alert in await first.all("t1")] == ["resolved"]
        assert await first.all("t2") == []
    finally:
        for ledger in ledgers:
            await ledger.close()


async def test_what_a_dead_webhook_is_not_told_is_bounded(tmp_path: Path) -> None:
    moment = START
    ledger = SqliteLedger(tmp_path)
    book = SqlAlertBook(ledger, lambda: moment)
    try:
        found = [RuleFinding(f"rule-{number}", 1.0, 0.5, True) for number in range(MOST_MESSAGES + 5)]
        await book.update("t1", "acme", found, tell=True)
        count = "SELECT count(*) FROM alert_messages"
        assert await ledger.control_read(lambda db: db.execute(count).fetchone()[0], 0) == MOST_MESSAGES
        first = await book.take_message()
        assert first is not None
        message = first
        for attempt in range(2, MOST_ATTEMPTS + 1):
            await book.end_message(message, sent=False)
            moment += timedelta(hours=1)
            await ledger.control_write(lambda db: db.execute("DELETE FROM alert_messages WHERE id <> ?", (first.id,)))
            taken = await book.take_message()
            assert taken is not None
            assert (taken.id, taken.attempts) == (first.id, attempt)
            message = taken
        await book.end_message(message, sent=False)
        moment += timedelta(days=2)
        assert await book.take_message() is None  # given up
    finally:
        await ledger.close()
