"""Twenty tenants do random things at once, and nothing that any of them is told is another's.

`RAGSTONE_MACHINE_EXAMPLES=36 RAGSTONE_MACHINE_STEPS=100 pytest tests/faults/test_tenant_machine.py` is the long run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.conformance import postgres_server
from tests.conformance.postgres_server import MIGRATED, server
from tests.faults.tenant_model import COLOURS, KBS, WORDS, Life
from tests.faults.tenant_world import TENANTS, World, all_of, first_lives, settle_in

from ragstone import Settings, open_engine
from ragstone.core.ids import opaque_id
from ragstone.testing.fakes import FakeEmbedder

EXAMPLES = int(os.environ.get("RAGSTONE_MACHINE_EXAMPLES", "1"))
STEPS = int(os.environ.get("RAGSTONE_MACHINE_STEPS", "20"))
LONG = EXAMPLES > 10
"""Look elsewhere every time, and take the time to make a failure small."""
AT_ONCE = 8
FEW = 6
"""Tenants whose files are open at a time: the others are closed and opened again all the while."""
POSTGRES = 18
LIMITS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    derandomize=not LONG,
    phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
    report_multiple_bugs=False,
    database=None,
    suppress_health_check=list(HealthCheck),
)
FEWER = settings(LIMITS, max_examples=max(1, EXAMPLES // 2))
"""For what differs from another variant in one part only."""
postgres_databases = postgres_server.postgres_databases
Store = dict[str, Any]
numbers = st.integers(0, TENANTS - 1)
kbs = st.sampled_from(KBS)
words = st.sampled_from(WORDS)
colours = st.sampled_from(COLOURS)
queries = words | numbers.map(str)
"""A word that all share, or somebody's canary."""


class TenantMachine(RuleBasedStateMachine):
    """What the rules plan is done by several tenants at once, by each in its own order."""

    def __init__(self, settings: Settings, lives: list[Life], steps: Iterator[int]) -> None:
        super().__init__()
        self._steps = steps
        self._plans: defaultdict[int, list[tuple[str, tuple[Any, ...]]]] = defaultdict(list)
        self._whole = False
        self._loop = asyncio.Runner()
        self._closing = AsyncExitStack()
        self.world = self._loop.run(self._open(settings, deepcopy(lives)))
        self._whole = True

    async def _open(self, settings: Settings, lives: list[Life]) -> World:
        return World(await self._closing.enter_async_context(open_engine(settings)), lives)

    @initialize(kb=kbs, word=words)
    def begin_with_some_of_everything(self, kb: str, word: str) -> None:
        for number in range(TENANTS):
            self._plans[number] = [("ingest", (kb, 2, word, COLOURS[0]))]
        for number, (action, *arguments) in enumerate(
            [
                ("suspend",),
                ("leave",),
                ("rename",),
                ("delete_kb", kb),
                ("delete", kb, 2),
                ("upload", kb, word),
                ("pry", kb),
                ("ask", kb, word),
                ("explain", kb, COLOURS[0]),
            ]
        ):
            self._plans[number].append((action, tuple(arguments)))
        self._run(lambda: self.world.swap_names(TENANTS - 2, TENANTS - 1))

    @rule(number=numbers, kb=kbs, slot=st.integers(0, 3), word=words, colour=colours)
    def ingest(self, number: int, kb: str, slot: int, word: str, colour: str) -> None:
        self._plan(number, "ingest", kb, slot, word, colour)

    @rule(number=numbers, kb=kbs, slot=st.integers(0, 3))
    def delete(self, number: int, kb: str, slot: int) -> None:
        self._plan(number, "delete", kb, slot)

    @rule(number=numbers, kb=kbs)
    def delete_kb(self, number: int, kb: str) -> None:
        self._plan(number, "delete_kb", kb)

    @rule(
        number=numbers,
        kb=kbs,
        word=queries,
        arms=st.sampled_from(["dense", "lexical", "hybrid"]),
        colour=st.none() | colours,
    )
    def search(self, number: int, kb: str, word: str, arms: str, colour: str | None) -> None:
        self._plan(number, "search", kb, word, arms, colour)

    @rule(number=numbers, kb=kbs, word=words)
    def ask(self, number: int, kb: str, word: str) -> None:
        self._plan(number, "ask", kb, word)

    @rule(number=numbers, kb=kbs, colour=st.none() | colours)
    def list_documents(self, number: int, kb: str, colour: str | None) -> None:
        self._plan(number, "list_documents", kb, colour)

    @rule(number=numbers, kb=kbs)
    def read(self, number: int, kb: str) -> None:
        self._plan(number, "read", kb)

    @rule(number=numbers, kb=kbs, colour=colours)
    def explain(self, number: int, kb: str, colour: str) -> None:
        self._plan(number, "explain", kb, colour)

    @rule(number=numbers)
    def count(self, number: int) -> None:
        self._plan(number, "count")

    @rule(number=numbers, kb=kbs)
    def pry(self, number: int, kb: str) -> None:
        self._plan(number, "pry", kb)

    @rule(number=numbers, kb=kbs, word=words)
    def upload(self, number: int, kb: str, word: str) -> None:
        self._plan(number, "upload", kb, word)
        self._plan(number, "list_jobs")

    @rule(number=numbers, action=st.sampled_from(["rename", "suspend", "resume", "leave"]))
    def administer(self, number: int, action: str) -> None:
        self._plan(number, action)

    @rule(kb=kbs, word=queries, arms=st.sampled_from(["dense", "lexical", "hybrid"]))
    def search_all_at_once(self, kb: str, word: str, arms: str) -> None:
        self._run_for_all("search", kb, word, arms, None)

    @rule(first=numbers, second=numbers)
    def swap_names(self, first: int, second: int) -> None:
        self._run(lambda: self.world.swap_names(first, second))

    @rule(kb=kbs, slot=st.integers(0, 3), word=words, colour=colours)
    def ingest_all_at_once(self, kb: str, slot: int, word: str, colour: str) -> None:
        self._run_for_all("ingest", kb, slot, word, colour)

    @precondition(lambda self: any(life.queued for life in self.world.lives))
    @rule()
    def work(self) -> None:
        self._run(self.world.work)

    @invariant()
    def count_step(self) -> None:
        next(self._steps)

    def teardown(self) -> None:
        try:
            if self._whole:
                self._run(lambda: all_of(*map(self.world.census, range(TENANTS))))
        finally:
            self._loop.run(self._closing.aclose())
            self._loop.close()

    def _plan(self, number: int, action: str, *arguments: Any) -> None:
        self._plans[number].append((action, arguments))
        if sum(map(len, self._plans.values())) >= AT_ONCE:
            self._run()

    def _run_for_all(self, action: str, *arguments: Any) -> None:
        for number in range(TENANTS):
            self._plans[number].append((action, arguments))
        self._run()

    def _run(self, *after: Callable[[], Awaitable[None]]) -> None:
        """Do what is planned, and then what is not to be done beside it."""

        async def run() -> None:
            plans, self._plans = self._plans, defaultdict(list)
            await self.world.together(plans)
            for task in after:
                await task()

        self._whole = False
        self._loop.run(run())
        self._whole = True


@pytest.fixture(scope="module", autouse=True)
def _fake_model() -> Iterator[None]:
    fake = FakeEmbedder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
        # Here names change hands all the time: that they rest before they do is tested elsewhere.
        patch.setattr("ragstone.stores.control.tenant_rows.REST_SECONDS", 0)
        # On a busy machine a search waits for its turn: that it is refused after 30 s is tested elsewhere.
        patch.setattr("ragstone.engine.components.SEARCH_WAIT", 3600)
        yield


@pytest.fixture(scope="module")
def lives() -> list[Life]:
    """The tenants that every engine begins with."""
    return first_lives()


@pytest.fixture(scope="module")
def stock(lives: list[Life], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with these tenants in it, made once."""
    folder = tmp_path_factory.mktemp("stock") / "data"
    fill(Settings(data_dir=folder), lives)
    return folder


@pytest.fixture(scope="module")
def database_stock(lives: list[Life], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with these tenants in it, to make others from."""
    name = f"stock_{opaque_id()}"
    with psycopg.connect(server(POSTGRES).admin(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {MIGRATED} OWNER app")
    fill(Settings(data_dir=tmp_path_factory.mktemp("stock"), store=database(name)), lives)
    return name


@pytest.mark.req("R-TEN-18", "R-REL-14")
@pytest.mark.parametrize(
    ("store", "limits"),
    [
        pytest.param({}, LIMITS, id="sqlite"),
        pytest.param({"vectors": "memory", "isolation": "namespace"}, FEWER, id="memory-namespace"),
        pytest.param({"vectors": "qdrant", "isolation": "filter"}, FEWER, id="qdrant-filter"),
    ],
)
def test_nobody_is_told_what_is_anothers(
    store: Store,
    limits: settings,
    lives: list[Life],
    stock: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    numbers = count()

    def fresh() -> Settings:
        place = shutil.copytree(stock, tmp_path / str(next(numbers)))
        return Settings(data_dir=place, store={"open_tenants": FEW, **store}, jobs={"retry_seconds": 0})

    steps = count()
    run_state_machine_as_test(lambda: TenantMachine(fresh(), lives, steps), settings=limits)
    record_property("injected", next(steps))


@pytest.mark.req("R-TEN-18", "R-REL-14")
@pytest.mark.parametrize(("lexical", "limits"), [("postgres", LIMITS), ("postgres_fts", FEWER)], ids=["bm25", "fts"])
def test_nobody_is_told_what_is_anothers_in_one_database(
    lexical: str,
    limits: settings,
    lives: list[Life],
    database_stock: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    def fresh() -> Settings:
        name = server(POSTGRES).create(database_stock)
        return Settings(data_dir=tmp_path / name, store=database(name, lexical))

    steps = count()
    run_state_machine_as_test(lambda: TenantMachine(fresh(), lives, steps), settings=limits)
    record_property("injected", next(steps))


def database(name: str, lexical: str = "postgres") -> Store:
    return {"ledger": {"kind": "postgres", "dsn": server(POSTGRES).dsn(name)}, "lexical": lexical}


def fill(settings: Settings, lives: list[Life]) -> None:
    async def run() -> None:
        async with open_engine(settings) as engine:
            await settle_in(engine, lives)

    asyncio.run(run())
