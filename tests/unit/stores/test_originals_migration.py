"""Jobs that an earlier version took in are read by this one: originals are counted, and facts are JSON."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from ragstone.stores import migrations
from ragstone.stores.migrations import upgrade

INSERT = """
INSERT INTO jobs (id, tenant_id, kb_id, kind, state, priority, document_id, source, external_id, uri, content_hash,
    size, facts, progress, notify, attempts, token, worker, boot, lease_until, not_before, error_code, error,
    created_at)
VALUES (?, 't', 1, ?, ?, 0, ?, 'upload', ?, ?, '', ?, ?, '{}', 0, 0, 0, '', '', 0, 0, '', '', 'now')
"""


def make_file(path: Path, revision: str) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent / "tenant"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def test_what_is_held_is_counted_and_what_was_let_go_of_is_not(tmp_path: Path) -> None:
    path = tmp_path / "tenant.db"
    make_file(path, "0005")
    jobs = [
        # id, kind, state, document, size, kept
        ("replaced", "document", "completed", "a", 100, True),
        ("live", "document", "completed", "a", 110, True),
        ("failed", "document", "failed", "a", 120, True),
        ("passed", "document", "completed", "b", 200, False),
        ("cancelled", "document", "cancelled", "c", 300, True),
        ("waiting", "document", "pending", "d", 400, False),
        ("look", "sync", "completed", "", 0, None),
    ]
    with closing(sqlite3.connect(path)) as connection:
        for identity, kind, state, document, size, keep in jobs:
            facts = {} if keep is None else {"original": f"{identity}-file", "keep": keep}
            row = (identity, kind, state, document, identity, identity, size, json.dumps(facts))
            connection.execute(INSERT, row)
        connection.commit()
    upgrade(path, "tenant")
    with closing(sqlite3.connect(path)) as connection:
        counted = dict(connection.execute("SELECT id, stored FROM jobs"))
    assert counted == {
        "replaced": 0,
        "live": 110,
        "failed": 120,
        "passed": 0,
        "cancelled": 300,
        "waiting": 400,
        "look": 0,
    }


def test_numbers_that_json_does_not_have_become_null(tmp_path: Path) -> None:
    path = tmp_path / "tenant.db"
    make_file(path, "0011")
    good = '{"original": "kept", "metadata": {"size": 1.5}}'
    bad = '{"original": "kept", "metadata": {"score": NaN, "size": [Infinity, -Infinity], "note": "NaN"}}'
    with closing(sqlite3.connect(path)) as connection:
        for identity, facts in (("good", good), ("bad", bad)):
            connection.execute(INSERT, (identity, "document", "failed", identity, identity, identity, 5, facts))
        connection.commit()
    upgrade(path, "tenant")
    with closing(sqlite3.connect(path)) as connection:
        told = dict(connection.execute("SELECT id, facts FROM jobs"))
        names = connection.execute("SELECT DISTINCT json_extract(facts, '$.original') FROM jobs").fetchall()
    assert (told["good"], names) == (good, [("kept",)])
    assert json.loads(told["bad"])["metadata"] == {"score": None, "size": [None, None], "note": "NaN"}
