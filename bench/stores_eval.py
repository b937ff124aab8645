"""The same labelled collection on every store: quality must not depend on where the vectors are."""

from __future__ import annotations

import json
import os
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
    for kind in KINDS:
        print(f"  {kind} …", file=sys.stderr)
        with tempfile.TemporaryDirectory() as place, _environment(kind, Path(place)) as environment:
            command = [
                sys.executable,
                "-m",
                "ragstone",
                "eval",
                str(folder),
                "--json",
                "--data-dir",
                f"{place}/data",
            ]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        found = {row["system"]: row["ndcg@10"] for row in json.loads(done.stdout)["rows"]}
        base = base or found
        apart = max(abs(found[system] - base[system]) for system in base)
        value = ", ".join(f"{system} {score:.4f}" for system, score in found.items())
        rows.append(Row(PART, kind, f"nDCG@10 {value}", f"± {SAME}", apart <= SAME))
    return rows


@contextmanager
def _environment(kind: str, place: Path) -> Iterator[dict[str, str]]:
    if kind == "postgres":
        from tests.conformance.postgres_server import server

        own = {"LEDGER": "postgres", "LEDGER__DSN": server(18).database(place)}
        yield _with(own)
    elif kind == "milvus":
        from tests.conformance.milvus_server import running

        with running(place / "server") as url:
            yield _with({"VECTORS": "milvus", "VECTORS__URL": url})
    else:
        yield _with({"VECTORS": kind})


def _with(store: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **{f"RAGSTONE_STORE__{key}": value for key, value in store.items()}}
