"""Alerts: rules over recorded figures, looked at now and then, with a webhook that is told when one begins or ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from ragstone.core.activity import SearchFacts
from ragstone.core.clock import now
from ragstone.core.errors import FetchError, RagstoneError, TenantGone
from ragstone.core.tenants import Tenant
from ragstone.engine.monitoring.figures import (
    QUALITY,
    count_documents,
    latency_of,
    measure_quality,
    read_facts,
    sources_of,
)
from ragstone.fetch.webhook import Webhook
from ragstone.settings.targets import Target
from ragstone.settings.tree import Settings
from ragstone.stores.control.alerts import Alert, RuleFinding, SqlAlertBook

if TYPE_CHECKING:
    from ragstone.engine.components import Components

logger = logging.getLogger(__name__)
LEAST = 5
"""The number of searches or documents from which a share or a percentile says something."""
SECONDS = 30.0
"""The longest that one look at all tenants may take; the next one goes on with the others."""
MOST_SENT = 20
"""The number of messages that are sent in one go."""
DAY = timedelta(days=1)
VECTORS, BUDGET, DOCUMENTS, WEB, P95 = "vectors.unavailable", "budget", "documents.failed", "web.failed", "p95_ms"
RULES: Mapping[str, str] = {
    P95: "95 % of the searches of the last `alerts.minutes` took less than this; `alerts.latency_ms` without a target",
    DOCUMENTS: "Share of the documents of the last day that failed, above `alerts.failed_documents`",
    WEB: "Share of web searches that failed, above `alerts.failed_web_searches`",
    BUDGET: "Share of the monthly budget that is spent, above `alerts.budget`",
    VECTORS: "The vector database outside the ledger does not answer",
}
"""The rules that are always there, and what each of them looks at."""


class AlertWatch:
    """Looks at the rules of all tenants and of the service itself."""

    def __init__(self, components: Components, book: SqlAlertBook) -> None:
        self._components = components
        self._settings = components.settings.alerts
        self._book = book
        self._last = time.monotonic()
        self._turn = asyncio.Lock()
        self._next_tenant = ""
        at_once = components.settings.fetch.model_copy(update={"retries": 0})
        address, secret = self._settings.webhook, self._settings.webhook_secret
        self._webhook = Webhook(address, secret, at_once) if address else None

    async def tick(self) -> None:
        """Look at all rules and send what is to be told, if it is time for that; what fails is logged."""
        if self._turn.locked() or time.monotonic() - self._last < self._settings.every_seconds:
            return
        async with self._turn:
            self._last = time.monotonic()
            try:
                await self.evaluate()
            except RagstoneError as error:
                logger.warning("cannot look at the alert rules: %s", error)
            try:
                await self.send_messages()
            except RagstoneError as error:
                logger.warning("cannot send alerts: %s", error)

    async def evaluate(self) -> list[Alert]:
        """Look at the rules of the service and of all tenants; return the alerts that began or ended."""
        changed = await self._update("", "", await self._look_at_service())
        until = time.monotonic() + SECONDS
        tenants = sorted(await self._components.stores.tenants.all(), key=lambda tenant: tenant.name)
        later = [tenant for tenant in tenants if tenant.name >= self._next_tenant]
        for tenant in [*later, *tenants[: len(tenants) - len(later)]]:
            if time.monotonic() > until:
                self._next_tenant = tenant.name
                break
            if tenant.state != "active":
                continue
            try:
                changed += await self._update(tenant.id, tenant.name, await self._look_at(tenant))
            except TenantGone:
                continue
            except RagstoneError as error:
                # The broken ledger of one tenant must not hide the alerts of the others.
                logger.warning("cannot look at the alert rules of tenant '%s': %s", tenant.name, error)
        else:
            self._next_tenant = ""
        return changed

    async def send_messages(self) -> None:
        """Send the messages that are due; one that is not taken is sent again later."""
        if self._webhook is None:
            return
        for _ in range(MOST_SENT):
            message = await self._book.take_message()
            if message is None:
                return
            try:
                await self._webhook.send(message.body)
            except FetchError as error:
                logger.warning("the webhook did not take an alert: %s", error, extra={"facts": {"alert": message.id}})
                await self._book.end_message(message, sent=False)
                return
            await self._book.end_message(message, sent=True)

    async def close(self) -> None:
        if self._webhook:
            await self._webhook.close()

    async def _update(self, tenant_id: str, tenant: str, findings: Sequence[RuleFinding]) -> list[Alert]:
        changed = await self._book.update(tenant_id, tenant, findings, tell=self._webhook is not None)
        for alert in changed:
            facts = {"rule": alert.rule, "state": alert.state, "value": alert.value, "threshold": alert.threshold}
            logger.warning("alert", extra={"facts": {**facts, "tenant": alert.tenant}})
        return changed

    async def _look_at_service(self) -> list[RuleFinding]:
        if self._components.stores.derived is None:
            return []
        state = (await self._components.readiness.check()).components.get("vectors", "ok")
        return [RuleFinding(VECTORS, float(state != "ok"), 0.0, state != "ok")]

    async def _look_at(self, tenant: Tenant) -> list[RuleFinding]:
        settings = await self._components.access.settings_for(tenant.name)
        moment = now()
        facts = await read_facts(self._components, tenant.name, moment - timedelta(minutes=self._settings.minutes))
        figures = dict(_search_figures(facts))
        documents = await count_documents(self._components, tenant.name, moment - DAY)
        if (ended := sum(documents.values())) >= LEAST:
            figures[DOCUMENTS] = documents.get("failed", 0) / ended
            figures["ingest.success"] = 1 - figures[DOCUMENTS]
        if any(name in settings.targets for name in QUALITY):
            judged, quality = await measure_quality(self._components, tenant.name, moment - DAY)
            figures |= quality if judged >= LEAST else {}
        if budget := tenant.quotas.cost_per_month:
            figures[BUDGET] = (await self._components.stores.tenants.usage(tenant.name)).cost / budget
        return list(judge_figures(figures, rules_of(settings)))


def rules_of(settings: Settings) -> dict[str, Target]:
    """Return the bounds of all rules of a tenant: those of the settings, and those of its profile over them."""
    own = settings.alerts
    bounds = {P95: own.latency_ms, DOCUMENTS: own.failed_documents, WEB: own.failed_web_searches, BUDGET: own.budget}
    rules = {name: Target(below=bound, alert=bound) for name, bound in bounds.items()}
    return rules | {name: target for name, target in settings.targets.items() if target.alert is not None}


def judge_figures(figures: Mapping[str, float], rules: Mapping[str, Target]) -> Iterator[RuleFinding]:
    """Yield what the rules say of the figures that are there; a figure that is missing changes nothing."""
    for name, rule in rules.items():
        if name in figures and rule.alert is not None:
            value = round(figures[name], 6)
            yield RuleFinding(name, value, rule.alert, rule.alarms(value))


def _search_figures(facts: Sequence[SearchFacts]) -> Iterator[tuple[str, float]]:
    by_mode = {
        f"{mode}.": [search for search in facts if search.mode == mode] for mode in ("fast", "balanced", "thorough")
    }
    for prefix, searches in {"": facts, **by_mode}.items():
        found = latency_of(searches)
        for name, value in (("p50_ms", found.p50), ("p95_ms", found.p95), ("p99_ms", found.p99)):
            if value is not None and found.searches >= LEAST:
                yield f"{prefix}{name}", value
    web = sources_of(facts)["internet"]
    if web.asked >= LEAST:
        yield WEB, web.failed / web.asked
