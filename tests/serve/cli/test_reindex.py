"""`kb reindex`: what there is to make anew, and what is said when there is nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conformance import postgres_server

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

postgres_databases = postgres_server.postgres_databases


@pytest.mark.req("R-STO-14")
def test_postgres_makes_its_indexes_anew(cli: Cli, pages: Path, tmp_path: Path) -> None:
    store = {
        "ledger": {"kind": "postgres", "dsn": postgres_server.server(postgres_server.INDEXED).database(tmp_path)},
        "vectors": {"kind": "pgvector", "options": {"index": "ivfflat", "exact_below": 1, "lists": 2}},
    }
    (tmp_path / "ragstone.yaml").write_text(json.dumps({"store": store}))
    assert cli("ingest", pages, "--quiet").code == 0
    ran = cli("kb", "reindex", "default", "--json")
    assert ran.json == {"kb": "default", "rebuilt": ["vectors", "lexical"]}
    assert cli("kb", "reindex", "default").out == "Rebuilt: vectors and lexical.\n"
    found = cli("search", "where do dogs travel", "--json")
    assert found.json["hits"][0]["title"] == "Fares"
    assert found.json["degraded"] == []


def test_the_embedded_store_has_nothing_to_make_anew(filled: Cli) -> None:
    assert filled("kb", "reindex", "default", "--json").json == {"kb": "default", "rebuilt": []}
    assert filled("kb", "reindex", "default").out == "There is nothing to rebuild.\n"
    refused = filled("kb", "reindex", "other")
    assert refused.code == 4
    assert "there is no knowledge base 'other'" in refused.err


def test_all_vectors_of_a_kb_are_made_again(filled: Cli) -> None:
    chunks = filled("stats", "--json").json["chunks"]
    ran = filled("kb", "resync", "default", "--yes", "--json")
    assert (ran.code, ran.json["removed"], ran.json["written"], ran.json["chunks"]) == (0, chunks, chunks, chunks)
    assert (ran.json["kb"], ran.json["generation"], ran.json["resumed"]) == ("default", 2, False)
    hits = filled("search", "where do dogs travel", "--json").json["hits"]
    assert hits[0]["title"] == "Fares"
    assert "dense" in hits[0]["scores"]
    refused = filled("kb", "resync", "other", "--yes")
    assert refused.code == 4
    assert "there is no knowledge base 'other'" in refused.err
