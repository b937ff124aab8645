"""The same labelled collection on every store: quality must not depend on where the vectors are.

The collection is embedded once, on SQLite, or taken from RAGSTONE_DATA_DIR where an earlier run left it. The other
stores get its vectors the way a user would move them: a vector database is filled from the ledger when it is first
named, PostgreSQL by `ragstone migrate`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.report import Row

PART = "stores eval"
SAME = 0.005
KINDS = ("sqlite", "postgres", "chroma", "qdrant", "milvus")


def run(folder: Path) -> list[Row]:
    """`ragstone eval` with nothing changed but the store."""
    rows: list[Row] = []
    base: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        embedded = Path(place) / "sqlite" / "data"
        for kind in KINDS:
            print(f"  {kind} …", file=sys.stderr)
            own = Path(place) / kind
            own.mkdir()
            before = os.environ.get("RAGSTONE_DATA_DIR") if kind == "sqlite" else embedded
            if before:
                shutil.copytree(before, own / "data")
            with _environment(kind, own) as environment:
                found = _scores(folder, own / "data", environment)
            base = base or found
            apart = max(abs(found[system] - base[system]) for system in base)
            value = ", ".join(f"{system} {score:.4f}" for system, score in found.items())
            rows.append(Row(PART, kind, f"nDCG@10 {value}", f"± {SAME}", apart <= SAME))
    return rows


def _scores(folder: Path, data: Path, environment: dict[str, str]) -> dict[str, float]:
    done = _ragstone(["eval", str(folder), "--json", "--data-dir", str(data)], environment)
    return {row["system"]: row["ndcg@10"] for row in json.loads(done)["rows"]}


def _ragstone(arguments: list[str], environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "ragstone", *arguments]
    done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # with --json the reason is on stdout
        raise SystemExit(f"{' '.join(command)} failed: {done.stdout}")
    return done.stdout


@contextmanager
def _environment(kind: str, place: Path) -> Iterator[dict[str, str]]:
    if kind == "postgres":
        from tests.conformance.postgres_server import server

        dsn = server(18).database(place)
        _ragstone(["migrate", "--to", "postgres", "--dsn", dsn, "--data-dir", str(place / "data")], _with({}))
        yield _with({"LEDGER": "postgres", "LEDGER__DSN": dsn})
    elif kind == "milvus":
        from tests.conformance.milvus_server import running

        with running(place / "server") as url:
            yield _with({"VECTORS": "milvus", "VECTORS__URL": url})
    else:
        yield _with({"VECTORS": kind})


def _with(store: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **{f"RAGSTONE_STORE__{key}": value for key, value in store.items()}}
