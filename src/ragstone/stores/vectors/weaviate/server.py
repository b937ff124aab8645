"""Weaviate's REST interface v1 and its GraphQL queries: what a server of classes, tenants and objects is asked for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from ragstone.core.errors import SettingsError, StoreBusy
from ragstone.core.types import Json
from ragstone.fetch.calls import Sleep
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import seconds_option
from ragstone.stores.vectors.rest import Account, RestService, encode, first_message, service_url

OLDEST = (1, 27)
CONSISTENCY = ("ALL", "QUORUM", "ONE")


class ClassTenant(NamedTuple):
    """A class and, if it is one for many tenants, the tenant in it."""

    name: str
    tenant: str = ""


class WeaviateServer:
    """One server. Remembers the classes and tenants it has seen."""

    def __init__(self, adapter: Adapter, *, sleep: Sleep = asyncio.sleep) -> None:
        self._url = service_url(adapter)
        self._consistency = _consistency(adapter)
        key = adapter.api_key.get_secret_value() if adapter.api_key else ""
        account = Account(
            name="weaviate",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            secret=key,
            timeout=seconds_option(adapter, "timeout", 30.0),
            key_hint="check store.vectors.api_key",
            address_hint="check store.vectors.url and that Weaviate runs there",
        )
        self.service = RestService(account, sleep=sleep)
        self._seen: set[ClassTenant] = set()

    def reading(self) -> AbstractContextManager[None]:
        """Return a context for code that takes an answer apart."""
        return self.service.reading(self._url)

    async def version(self) -> str:
        """Return the version of the server; refuse one that is too old."""
        answer = await self.service.call("GET", f"{self._url}/v1/meta")
        with self.reading():
            version = str(answer.body["version"])
        found = re.match(r"(\d{1,4})\.(\d{1,4})", version)
        if found and (int(found[1]), int(found[2])) < OLDEST:
            raise self.service.failure(
                self._url,
                f"is version {version:.20}, whose filters mean something else",
                hint=f"upgrade it to {OLDEST[0]}.{OLDEST[1]} or newer",
            )
        return version

    async def make(self, target: ClassTenant, definition: Json) -> Json:
        """Create the class and the tenant if they do not exist; return the class as it is then."""
        there = await self._definition(target)
        if there is None:
            # 422: another process was first, or it is refused, which the next look tells.
            answer = await self.service.call("POST", f"{self._url}/v1/schema", definition, expect={422})
            there = await self._definition(target)
            if there is None:
                raise self._refusal("refused a class", answer.body)
        if target.tenant and not await self.has(target):
            url = f"{self._url}/v1/schema/{target.name}/tenants"
            answer = await self.service.call("POST", url, [{"name": target.tenant}], expect={422})
            if not await self.has(target):
                raise self._refusal("refused a tenant", answer.body)
        self._seen.add(target)
        return there

    async def has(self, target: ClassTenant) -> bool:
        """Return whether the class, and the tenant in it, exist."""
        if target not in self._seen:
            path = f"/tenants/{target.tenant}" if target.tenant else ""
            answer = await self.service.call(
                "HEAD" if path else "GET", f"{self._url}/v1/schema/{target.name}{path}", expect={404, 422}
            )
            if answer.status >= 300:
                return False
            self._seen.add(target)
        return True

    async def store(self, target: ClassTenant, objects: Sequence[Json]) -> None:
        """Store objects in place of those with the same ids; each is found when this returns."""
        # Writing numbers as text takes long enough to keep others waiting.
        body = await asyncio.to_thread(encode, {"objects": list(objects)})
        answer = await self.service.call(
            "POST", f"{self._url}/v1/batch/objects", body, query={"consistency_level": self._consistency}
        )
        with self.reading():
            failed = [entry["result"] for entry in answer.body if entry["result"].get("status") != "SUCCESS"]
            stored = len(answer.body) - len(failed)
        if stored < len(objects):
            self._seen.discard(target)
            reason = failed[0].get("errors") if failed else None
            raise self._refusal(f"stored {stored} of {len(objects)} points", reason)

    async def rows(self, target: ClassTenant, query: str) -> list[Json]:
        """Return what a query finds; nothing where the class or tenant does not exist, or not any more."""
        if not await self.has(target):
            return []
        answer = await self.service.call("POST", f"{self._url}/v1/graphql", {"query": query}, expect={422})
        with self.reading():
            if answer.status == 200 and not answer.body.get("errors"):
                (found,) = answer.body["data"].values()
                return list(found[target.name] or ())
            said = answer.body.get("errors") or answer.body
        self._seen.discard(target)
        if not await self.has(target):
            return []
        raise self._refusal("refused a query", said, hint="see that GraphQL is enabled there")

    async def remove(self, target: ClassTenant, where: Json) -> None:
        """Remove all objects that meet a condition."""
        query = {"consistency_level": self._consistency} | ({"tenant": target.tenant} if target.tenant else {})
        body = {"match": {"class": target.name, "where": where}, "output": "minimal", "dryRun": False}
        while await self.has(target):
            answer = await self.service.call(
                "DELETE", f"{self._url}/v1/batch/objects", body, query=query, expect={404, 422}
            )
            if answer.status >= 300:
                # Gone since it was last seen, which is what was wanted, or truly refused.
                self._seen.discard(target)
                if await self.has(target):
                    raise self._refusal("refused to remove points", answer.body)
                return
            with self.reading():
                results = answer.body["results"]
                matched, removed, limit = results["matches"], results["successful"], results["limit"]
            if removed < min(matched, limit):
                raise StoreBusy(
                    f"weaviate removed {removed} of {matched} points", hint="try again; see Weaviate's own log"
                )
            # One call removes as many as a query may find at most, so that there may be more.
            if matched < limit:
                return

    async def drop(self, target: ClassTenant) -> None:
        """Remove a class with all that is in it."""
        await self.service.call("DELETE", f"{self._url}/v1/schema/{target.name}", expect={400, 404})
        self._seen = {seen for seen in self._seen if seen.name != target.name}
        if await self.has(ClassTenant(target.name)):
            raise self._refusal(f"kept class {target.name}, which was to be dropped", None)

    async def _definition(self, target: ClassTenant) -> Json:
        answer = await self.service.call("GET", f"{self._url}/v1/schema/{target.name}", expect={404})
        return None if answer.status == 404 else answer.body

    def _refusal(self, what: str, said: Json, *, hint: str = "see Weaviate's own log") -> Exception:
        reason = self.service.without_key(first_message(said))
        return self.service.failure(self._url, f"{what}: {reason}" if reason else what, hint=hint)


def _consistency(adapter: Adapter) -> str:
    level = adapter.options.get("consistency", CONSISTENCY[0])
    if level not in CONSISTENCY:
        raise SettingsError(
            f"store.vectors.options.consistency is {level!r:.40}", hint=f"choose one of: {', '.join(CONSISTENCY)}"
        )
    return str(level)
