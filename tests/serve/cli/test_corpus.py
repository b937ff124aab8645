"""`ragstone corpus` and `ragstone kb rename`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.flow.corpus_kit import leave_draft
from tests.serve.cli.conftest import Cli

from ragstone import Ragstone
from ragstone.core.collections import draft_prefix

TEXT = "The dragon sleeps under the mill. The miller pays in barley."
DATA = ("--data-dir", "data")


@pytest.fixture
def corpus() -> Path:
    path = Path("data/corpus.txt")
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


@pytest.mark.req("R-ING-23", "R-ING-27")
def test_build_says_what_came_of_it(cli: Cli, corpus: Path) -> None:
    result = cli("corpus", "build", "data/corpus.txt", *DATA, "--json").json
    assert list(result) == [
        "total_chunks",
        "bm25_index_path",
        "vector_db_collection",
        "metadata_path",
        "embedding_model",
        "embedding_dimension",
        "duration_seconds",
        "statistics",
    ]
    assert result["vector_db_collection"] == "corpus_embeddings"
    assert result["bm25_index_path"] == "data/indices/bm25_index.pkl"
    found = cli("search", "dragon", "--kb", "corpus_embeddings", *DATA, "--json").json["hits"]
    assert [hit["text"] for hit in found] == [TEXT]
    shown = cli("corpus", "chunk", found[0]["chunk_id"], *DATA, "--json").json
    assert (shown["source"], shown["position"]) == ("corpus.txt", 0)
    assert cli("corpus", "chunk", "nothing", *DATA).code == 4


def test_build_tells_people(cli: Cli, corpus: Path) -> None:
    ran = cli("corpus", "build", "corpus.txt", *DATA)
    assert ran.out.startswith("Built 'corpus_embeddings': 1 chunk in ")
    assert "data/indices/chunks.json" in ran.out
    assert 'next: ragstone search "…" --data-dir data --kb corpus_embeddings' in ran.err


@pytest.mark.req("R-CLI-04")
def test_build_without_a_path_reads_the_configured_corpus(cli: Cli, corpus: Path) -> None:
    assert cli("corpus", "build", *DATA, "--json").json["total_chunks"] == 1
    corpus.unlink()
    ran = cli("corpus", "build", *DATA, "--overwrite")
    assert (ran.code, "data/corpus.txt" in ran.err) == (4, True)


@pytest.mark.req("R-ING-25", "R-ING-26")
def test_overwrite_has_to_be_asked_for(cli: Cli, corpus: Path) -> None:
    cli("corpus", "build", "corpus.txt", *DATA)
    ran = cli("corpus", "build", "corpus.txt", *DATA, "--json")
    assert ran.code == 2
    assert ran.json["error"] == {
        "code": "COLLECTION_EXISTS",
        "message": "Collection already exists. Use overwrite=true to replace.",
        "hint": "add --overwrite, or name another collection with --kb NAME",
    }
    assert (
        cli("corpus", "build", "corpus.txt", *DATA, "--overwrite", "--chunk-size", "8", "--chunk-overlap", "0").code
        == 0
    )
    assert cli("corpus", "show", *DATA, "--json").json["total_chunks"] > 1
    assert cli("corpus", "build", "corpus.txt", *DATA, "--kb", "other").code == 0
    assert cli("corpus", "show", *DATA, "--json").json["bm25_index"] == "loaded"
    assert cli("corpus", "show", *DATA, "--kb", "other", "--json").json["bm25_index"] == "loaded"


@pytest.mark.req("R-SEC-15")
def test_a_root_that_is_set_holds_for_everybody(cli: Cli, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("book.txt").write_text(TEXT)
    monkeypatch.setenv("RAGSTONE_INGESTION__CORPUS_ROOT", str(corpus.parent))
    ran = cli("corpus", "build", "book.txt", *DATA)
    assert ran.code == 2
    assert "outside of the data root" in ran.err
    assert "--root FOLDER" in ran.err
    assert cli("corpus", "build", "book.txt", *DATA, "--root", ".").code == 0


def test_whoever_types_a_path_need_not_say_where_it_is(cli: Cli, corpus: Path) -> None:
    Path("book.txt").write_text(TEXT)
    assert cli("corpus", "build", "book.txt", *DATA).code == 0
    wrong = cli("corpus", "build", "book.txt", *DATA, "--root", "nowhere")
    assert (wrong.code, wrong.err.splitlines()[0]) == (2, "error: there is no folder nowhere")
    folder = cli("corpus", "build", ".", *DATA)
    assert (folder.code, folder.err.splitlines()[0]) == (2, "error: . is a folder")


def test_the_kb_of_the_settings_is_not_replaced(cli: Cli, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_KB", "handbook")
    assert cli("ingest", corpus, *DATA).code == 0
    assert cli("corpus", "build", "corpus.txt", *DATA, "--overwrite").code == 0
    assert {one["name"] for one in cli("kb", "list", *DATA, "--json").json["kbs"]} == {"handbook", "corpus_embeddings"}
    refused = cli("corpus", "build", "corpus.txt", *DATA, "--overwrite", "--kb", "handbook")
    assert refused.code == 2
    assert refused.err.splitlines()[0] == "error: knowledge base 'handbook' was not built from a corpus"


@pytest.mark.req("R-REL-23")
def test_nothing_there_yet_is_said(cli: Cli, corpus: Path) -> None:
    assert cli("ingest", corpus, *DATA).code == 0
    ran = cli("corpus", "show", *DATA)
    assert ran.code == 4
    assert ran.out == "There is no collection 'corpus_embeddings' yet.\n"
    assert "hint: ragstone corpus build PATH --data-dir data" in ran.err
    stores = cli("doctor", *DATA, "--json").json["stores"]
    assert ("collections", "files", "ok", "none was built from a corpus") in [
        (one["store"], one["what"], one["state"], one["detail"]) for one in stores
    ]


@pytest.mark.req("R-REL-23")
def test_doctor_finds_files_that_are_gone_and_builds_that_were_cut_short(cli: Cli, corpus: Path) -> None:
    def collections(*options: str) -> list[tuple[str, str]]:
        stores = cli("doctor", *DATA, *options, "--json").json["stores"]
        return [(one["what"], one["state"]) for one in stores if one["store"] == "collections"]

    cli("corpus", "build", "corpus.txt", *DATA)
    assert collections() == [("files", "ok")]
    Path("data/indices/chunks.json").unlink()
    with Ragstone(data_dir="data") as stone:
        leave_draft(stone)
    assert collections() == [("files", "warn"), ("builds", "warn")]
    assert cli("corpus", "show", *DATA, "--json").json["metadata"] == "missing"
    assert cli("search", "dragon", "--kb", "corpus_embeddings", *DATA).code == 0
    collections("--repair")
    assert cli("corpus", "show", *DATA, "--json").json["metadata"] == "loaded"
    assert collections() == [("files", "ok")]
    Path("data/indices/bm25_index.pkl").write_bytes(b"damaged")
    assert collections("--repair") == [("files", "ok")]
    assert cli("corpus", "show", *DATA, "--json").json["bm25_index"] == "loaded"


def test_an_empty_kb_says_so_and_names_the_others(filled: Cli, pages: Path) -> None:
    assert filled("kb", "rename", "default", "main").out == "Renamed knowledge base 'default' to 'main'.\n"
    filled("sources", "add", "files", "wiki", f"path={pages}")
    note = "note: knowledge base 'default' holds no documents; 'main' holds 3 documents (--kb main)\n"
    for command in ("search", "ask"):
        ran = filled(command, "dogs")
        assert (ran.code, ran.err) == (4, note)
        assert note not in filled(command, "zeppelin", "--kb", "main").err


def test_a_kb_gets_another_name(filled: Cli) -> None:
    assert filled("kb", "rename", "default", "handbook", "--json").json == {"renamed": "default", "name": "handbook"}
    assert [kb["name"] for kb in filled("kb", "list", "--json").json["kbs"]] == ["handbook"]
    assert filled("search", "dogs", "--kb", "handbook").code == 0
    ran = filled("kb", "rename", "default", "x")
    assert ran.code == 4
    assert "there is no knowledge base 'default'" in ran.err
    assert filled("kb", "rename", "handbook", "Not A Name").code == 2
    refused = filled("kb", "rename", "handbook", draft_prefix("x") + "01234567")
    assert refused.code == 2
    assert "like a collection that is being built" in refused.err
