"""The gate: who is let through, what it costs to ask, and who pays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragstone.core.audit import Caller, acting_as, caller
from ragstone.core.errors import (
    AccessDenied,
    BudgetSpent,
    ModelError,
    NotFoundError,
    QuotaExceeded,
    StoreError,
    TenantGone,
    TenantSuspended,
)
from ragstone.core.model_types import add_cost, require_budget
from ragstone.core.tenants import Quotas, Tenant
from ragstone.core.types import KnowledgeBase, Space
from ragstone.engine.access import REMEMBERED, TenantAccess, TenantScope, record_caller, within_kbs
from ragstone.settings.prices import PriceSettings
from ragstone.settings.tree import Settings
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.testing.builders import make_version, put
from ragstone.testing.fakes import FakeEmbedder


class CountedBook(SqlTenantBook):
    """Tells how often it was looked into."""

    asked = 0

    async def get(self, name: str) -> Tenant | None:
        self.asked += 1
        return await super().get(name)


class Kit:
    """A gate over a real book, and a clock that is moved by hand."""

    def __init__(self, folder: Path) -> None:
        self.seconds = 0.0
        self.ledger = SqliteLedger(folder, [Fts5Writer()])
        self.book = CountedBook(self.ledger)
        self.profiles: dict[str, dict[str, Any]] = {"rpg": {"retrieval": {"k": 3}}}
        self.gate = TenantAccess(self.book, Settings(), self.profiles.__getitem__, lambda: self.seconds)


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    made = Kit(tmp_path)
    yield made
    await made.ledger.close()


async def everything(gate: TenantAccess) -> list[type[BaseException] | None]:
    """How each thing that can be asked for a tenant ends."""

    async def taken_in() -> None:
        async with gate.taking_in("acme", documents=1):
            pass

    asked = (gate.query("acme"), gate.read("acme"), gate.write("acme"), taken_in(), gate.expect("acme", documents=1))
    ended = await asyncio.gather(*asked, return_exceptions=True)
    return [type(one) if isinstance(one, BaseException) else None for one in ended]


async def test_who_is_not_limited_passes(kit: Kit) -> None:
    assert await everything(kit.gate) == [None] * 5
    assert await kit.gate.write("acme") == ""
    made = await kit.book.create("acme")
    assert await everything(kit.gate) == [None] * 5
    assert await kit.gate.write("acme") == made.id


async def test_a_suspended_tenant_is_refused_altogether(kit: Kit) -> None:
    await kit.book.create("acme")
    await kit.book.suspend("acme")
    assert await everything(kit.gate) == [TenantSuspended] * 5
    with pytest.raises(TenantSuspended, match="tenant 'acme' is suspended"):
        await kit.gate.query("acme")
    await kit.book.resume("acme")
    assert await everything(kit.gate) == [None] * 5


async def test_a_tenant_that_is_being_deleted_is_refused(kit: Kit) -> None:
    async def away(_tenant: str) -> None:
        raise NotFoundError("the index is away")

    await kit.book.create("acme")
    kit.book._erasers = [away]
    with pytest.raises(NotFoundError, match="the index is away"):
        await kit.book.delete("acme")
    assert await everything(kit.gate) == [TenantGone] * 5


async def test_what_is_known_is_not_asked_for_again_within_a_second(kit: Kit) -> None:
    await kit.book.create("acme")
    kit.book.asked = 0
    for _ in range(100):
        await kit.gate.query("acme")
        await kit.gate.settings_for("acme")
        assert not await kit.gate.is_on("acme", "new")
    assert kit.book.asked == 1
    kit.seconds += 0.99
    await kit.gate.query("acme")
    assert kit.book.asked == 1
    kit.seconds += 0.01
    await kit.gate.query("acme")
    assert kit.book.asked == 2


async def test_what_another_process_changes_is_noticed_within_a_second(kit: Kit) -> None:
    await kit.book.create("acme")
    await kit.gate.query("acme")
    await SqlTenantBook(kit.ledger).suspend("acme")
    await kit.gate.query("acme")
    kit.seconds += 1
    with pytest.raises(TenantSuspended):
        await kit.gate.query("acme")


async def test_a_query_that_nothing_limits_writes_nothing(kit: Kit) -> None:
    await kit.book.create("acme", Quotas(documents=5, chunks=5, bytes=5))
    control = await kit.ledger.control()
    assert control is not None
    before = control.version()
    for _ in range(5):
        await kit.gate.query("acme")
        async with kit.gate.paying("acme"):
            pass
    assert control.version() == before


async def test_there_is_an_end_to_what_is_remembered(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    assert REMEMBERED >= 1000
    monkeypatch.setattr("ragstone.engine.access.REMEMBERED", 2)
    for name in ("a", "b", "c"):
        await kit.book.create(name)
        await kit.gate.query(name)
    assert list(kit.gate._known) == ["b", "c"]


@pytest.mark.req("R-TEN-13", "R-SEC-10")
async def test_queries_are_limited_by_the_minute(kit: Kit) -> None:
    await kit.book.create("acme", Quotas(queries_per_minute=2))
    await kit.book.create("b", Quotas(queries_per_minute=1))
    outcomes = await asyncio.gather(*(kit.gate.query("acme") for _ in range(10)), return_exceptions=True)
    assert 2 <= sum(one is None for one in outcomes) <= 4  # a minute may end meanwhile
    assert all(isinstance(one, QuotaExceeded) and one.retry_after for one in outcomes if one)
    await kit.gate.query("b")
    await kit.gate.read("acme")


async def test_room_is_held_as_long_as_it_is_needed(kit: Kit) -> None:
    await kit.book.create("acme", Quotas(documents=1, chunks=10))
    async with kit.gate.taking_in("acme", documents=1, chunks=2):
        assert (await kit.book.usage("acme")).reserved == {"documents": 1, "chunks": 2}
        with pytest.raises(QuotaExceeded):
            async with kit.gate.taking_in("acme", documents=1):
                pass
        await kit.gate.expect("acme", documents=1)  # the room may be given back
        await put(kit.ledger, make_version("a"), tenant="acme")
        with pytest.raises(QuotaExceeded):
            await kit.gate.expect("acme", documents=1)
    usage = await kit.book.usage("acme")
    assert (usage.stock.documents, usage.reserved) == (1, {})
    with pytest.raises(ZeroDivisionError):
        async with kit.gate.taking_in("acme", chunks=9):
            raise ZeroDivisionError
    assert (await kit.book.usage("acme")).reserved == {}


@pytest.mark.parametrize(("asked", "held"), [("documents", "documents"), ("chunks", "chunks"), ("size", "bytes")])
async def test_only_the_room_that_was_asked_for_is_held(kit: Kit, asked: str, held: str) -> None:
    await kit.book.create("acme", Quotas(documents=5, chunks=5, bytes=5))
    async with kit.gate.taking_in("acme", **{asked: 2}):
        reserved = (await kit.book.usage("acme")).reserved
        assert {name: number for name, number in reserved.items() if number} == {held: 2}


async def test_room_is_given_back_by_whoever_is_cancelled(kit: Kit) -> None:
    await kit.book.create("acme", Quotas(documents=1))
    entered = asyncio.Event()

    async def hold() -> None:
        async with kit.gate.taking_in("acme", documents=1):
            entered.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    await kit.gate.expect("acme", documents=1)


@pytest.mark.req("R-TEN-12")
async def test_who_asked_pays(kit: Kit) -> None:
    await kit.book.create("acme", Quotas(cost_per_month=1.0))
    await kit.book.create("b")

    async def work(tenant: str, usd: float) -> None:
        async with kit.gate.paying(tenant):
            await asyncio.gather(*(asyncio.to_thread(add_cost, "embedding", usd / 2) for _ in range(2)))
            add_cost("llm", usd)
            add_cost("llm", 0.0)

    await asyncio.gather(work("acme", 0.25), work("b", 10.0), work("acme", 0.25))
    assert (await kit.book.usage("acme")).cost_by_kind == {"embedding": 0.5, "llm": 0.5}
    assert (await kit.book.usage("b")).cost == 20.0
    await kit.gate.query("acme")

    async def failing() -> None:
        async with kit.gate.paying("acme"):
            add_cost("llm", 0.5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()  # what was spent is paid for, however it ended
    with pytest.raises(QuotaExceeded, match=r"may spend 1.00 USD per month and has spent 1.50"):
        await kit.gate.write("acme")
    await kit.gate.query("acme")
    async with kit.gate.asking("acme") as budget:
        assert budget is not None
        assert budget.is_spent
        with pytest.raises(BudgetSpent):
            require_budget()
    async with kit.gate.asking("b") as budget:
        assert budget is None
        require_budget()
    await kit.gate.read("acme")  # what there is may be looked at and deleted
    async with kit.gate.paying("deleted meanwhile"):
        add_cost("llm", 1.0)
    add_cost("llm", 1.0)  # nobody's


async def test_each_kind_of_cost_is_told_with_what_was_used(kit: Kit) -> None:
    told: list[tuple[str, str, float, float]] = []
    kit.gate._on_cost = lambda *cost: told.append(cost)
    await kit.book.create("acme")
    async with kit.gate.paying("acme"):
        pass
    assert told == []
    async with kit.gate.paying("acme"):
        add_cost("web", 0.0, units=1)  # free, and counted all the same
    assert told == [("acme", "web", 0.0, 1.0)]
    async with kit.gate.paying("acme"):
        add_cost("llm", 0.5, units=20)
        add_cost("embedding", 0.25)
    assert sorted(told[1:]) == [("acme", "embedding", 0.25, 0.0), ("acme", "llm", 0.5, 20.0)]


@pytest.mark.parametrize(("price", "charged"), [(None, set()), (0.0, set()), (70.0, {"vectors"})])
async def test_vectors_are_charged_for_where_the_store_costs_money(
    kit: Kit, price: float | None, charged: set[str]
) -> None:
    gate = TenantAccess(kit.book, Settings(prices=PriceSettings(vectors=price)), kit.profiles.__getitem__)
    await put(kit.ledger, make_version("a", ["one", "two"]), tenant="acme")
    await gate.charge_store("acme")
    assert set((await kit.book.usage("acme")).cost_by_kind) == charged


async def test_a_tenant_is_known_by_its_id_once_there_is_one(kit: Kit) -> None:
    assert await kit.gate.identity("acme") == ""
    made = await kit.book.create("acme")
    assert await kit.gate.identity("acme") == made.id


@pytest.mark.req("R-EMB-20")
async def test_a_tenant_has_settings_of_its_own(kit: Kit) -> None:
    assert await kit.gate.settings_for("acme") == Settings()
    await kit.book.create("acme")
    await kit.book.set_settings("acme", {"profile": "rpg", "embedding.model": "m", "flags.new": True})
    settings = await kit.gate.settings_for("acme")
    assert (settings.retrieval.k, settings.embedding.model) == (3, "m")
    assert await kit.gate.is_on("acme", "new")
    assert not await kit.gate.is_on("acme", "other")
    assert not await kit.gate.is_on("nobody", "new")


async def test_a_seed_is_the_first_name(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.stores.control.tenant_rows.REST_SECONDS", 0)
    assert await kit.gate.seed("acme") == "acme"
    await kit.book.create("acme")
    await kit.book.rename("acme", "apex")
    assert await kit.gate.seed("apex") == "acme"
    again = await kit.book.create("acme")
    assert await kit.gate.seed("acme") == again.id


@pytest.mark.parametrize(
    ("actor", "request_id", "recorded"),
    [
        ("key:1", "r7", Caller("key:1", "r7")),
        ("key:1", "", Caller("key:1", "outer")),
        ("", "r7", Caller("outside", "r7")),
        ("", "", Caller("outside", "outer")),
    ],
)
async def test_every_public_coroutine_of_a_part_is_recorded_under_its_caller(
    actor: str, request_id: str, recorded: Caller
) -> None:
    @record_caller
    class Part:
        def __init__(self) -> None:
            self._scope = TenantScope(SimpleNamespace(settings=Settings()), "acme", actor, request_id)  # type: ignore[arg-type]

        async def act(self) -> Caller:
            return caller()

        async def _act_inside(self) -> Caller:
            return caller()

        def name(self) -> str:
            return "part"

    part = Part()
    with acting_as("outside", "outer"):
        assert await part.act() == recorded
        assert await part._act_inside() == caller() == Caller("outside", "outer")
    assert part.name() == "part"


def scope_of(kit: Kit, *kbs: str) -> TenantScope:
    components: Any = SimpleNamespace(settings=Settings(kb="notes"), access=kit.gate, ledger=kit.ledger)
    return TenantScope(components, "acme", "", "", kbs)


async def test_a_scope_admits_its_tenant_until_it_is_suspended_or_the_engine_closed(kit: Kit) -> None:
    await kit.book.create("acme")
    scope = scope_of(kit)
    assert (scope.tenant, await scope.admit(), await scope.write()) == ("acme", "acme", "acme")
    await kit.book.suspend("acme")
    for asked in (scope.admit(), scope.write()):
        with pytest.raises(TenantSuspended):
            await asked
    kit.gate.close()
    with pytest.raises(StoreError, match="the engine is closed"):
        _ = scope.tenant


async def test_a_scope_sees_the_kbs_that_it_is_limited_to(kit: Kit) -> None:
    made = {}
    for kb in ("notes", "letters"):
        version = make_version(f"in {kb}", ["words"], kb=kb, tenant="acme")
        made[kb] = await put(kit.ledger, version, kb=kb, tenant="acme"), version.document_id
    everything, letters = scope_of(kit), scope_of(kit, "letters")
    assert (everything.is_limited, letters.is_limited) == (False, True)
    assert (everything.kb_name(None), everything.kb_name("letters")) == ("notes", "letters")
    assert letters.kb_name(None) == letters.kb_name("letters") == "letters"
    assert (await everything.kb(None)).id == made["notes"][0].id
    assert (await letters.kb(None)).id == made["letters"][0].id
    for scope, unknown in ((letters, "notes"), (everything, "none"), (scope_of(kit, "letters", "drafts"), None)):
        with pytest.raises(NotFoundError):
            await scope.kb(unknown)
    seen = [[await scope.sees_document(made[kb][1]) for kb in made] for scope in (everything, letters)]
    assert seen == [[True, True], [False, True]]


async def test_a_kb_has_the_embedder_of_its_space_while_that_is_available(kit: Kit) -> None:
    asked = []

    async def for_space(space: Space) -> FakeEmbedder:
        asked.append(space.model)
        if space.model == "gone":
            raise ModelError("no weights")
        return embedder

    embedder, scope = FakeEmbedder(), scope_of(kit)
    scope.components.embedders = SimpleNamespace(for_space=for_space)  # type: ignore[assignment]
    kbs = [KnowledgeBase(1, "notes", space and Space(1, space, 8, 1, "live")) for space in (None, "m", "gone")]
    assert [await scope.embedder_of(kb) for kb in kbs] == [None, embedder, None]
    assert asked == ["m", "gone"]


@pytest.mark.parametrize(("kbs", "refused"), [((), False), (("letters",), True)])
async def test_who_is_limited_to_some_kbs_may_do_nothing_that_concerns_the_tenant(
    kit: Kit, kbs: tuple[str, ...], refused: bool
) -> None:
    @record_caller
    class Part:
        _scope = scope_of(kit, *kbs)

        async def concern_all(self) -> str:
            return "done"

        @within_kbs
        async def concern_one(self) -> str:
            return "done"

    assert await Part().concern_one() == "done"
    if refused:
        with pytest.raises(AccessDenied, match="limited to some knowledge bases"):
            await Part().concern_all()
    else:
        assert await Part().concern_all() == "done"
