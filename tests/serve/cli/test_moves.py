"""`ragstone export`, `import` and `migrate` as people and programs call them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.cli.conftest import Cli

from ragstone import Ragstone


def test_an_archive_goes_out_and_in(filled: Cli, tmp_path: Path) -> None:
    ran = filled("export", "x.zip")
    assert ran.code == 0
    assert ran.out.startswith("Wrote x.zip (0.0 MB): 1 knowledge base, 3 documents, ")
    ran = filled("export", "x.zip")
    assert (ran.code, "x.zip exists already" in ran.err) == (2, True)
    ran = filled("import", "x.zip", "--data-dir", "elsewhere", "--tenant", "acme", "--json")
    assert ran.code == 0
    assert (ran.json["tenant"], ran.json["added"], ran.json["unchanged"]) == ("acme", 3, 0)
    ran = filled("import", "x.zip", "--data-dir", "elsewhere", "--tenant", "acme")
    assert ran.out.startswith("Added 0, replaced 0, left alone 3 equal ones")
    found = filled("search", "dogs", "--data-dir", "elsewhere", "--tenant", "acme", "--json").json["hits"]
    assert found[0]["uri"].endswith("fares.md")


def test_an_export_makes_no_folders(filled: Cli, tmp_path: Path) -> None:
    ran = filled("export", "backups/today/x.zip")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == ("error: there is no folder backups/today\nhint: make it with: mkdir -p backups/today\n")
    assert not (tmp_path / "backups").exists()


def test_some_kbs_are_named_by_commas(filled: Cli, pages: Path) -> None:
    for kb in ("notes", "mail"):
        assert filled("ingest", pages / "harbour.txt", "--kb", kb).code == 0
    assert filled("export", "x.zip", "--kb", "notes, mail", "--json").json["kbs"] == ["mail", "notes"]
    assert filled("import", "x.zip", "--kb", "notes", "--data-dir", "b", "--json").json["kbs"] == ["notes"]
    ran = filled("export", "y.zip", "--kb", "nowhere")
    assert (ran.code, "there is no knowledge base 'nowhere'" in ran.err) == (4, True)


def test_what_differs_is_named_and_left(cli: Cli, pages: Path) -> None:
    assert cli("ingest", pages).code == 0
    assert cli("export", "x.zip").code == 0
    assert cli("import", "x.zip", "--data-dir", "b").code == 0
    (pages / "harbour.txt").write_text("The harbour is closed.")
    assert cli("ingest", pages, "--data-dir", "b", "--json").json["updated"] == 1
    ran = cli("import", "x.zip", "--data-dir", "b")
    assert ran.code == 3
    assert "1 document here and different, and not replaced:" in ran.out
    assert "harbour.txt" in ran.out
    ran = cli("import", "x.zip", "--data-dir", "b", "--overwrite", "--json")
    assert (ran.code, ran.json["replaced"]) == (0, 1)


def test_an_archive_that_is_none_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04 and no more")
    ran = cli("import", "x.zip")
    assert ran.code == 2
    assert ran.err.startswith("error: x.zip is damaged")
    assert not (tmp_path / "ragstone-data").exists()


def test_an_export_of_nothing_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    assert cli("export", "x.zip").code == 4
    assert list(tmp_path.iterdir()) == []


def test_originals_that_were_encrypted_are_warned_of(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", "A" * 43 + "=")
    with Ragstone(data_dir=tmp_path / "ragstone-data", security={"key": "A" * 43 + "="}) as stone:
        stone.upload(b"The lamp is lit at dusk.", "note.txt")
        stone.work()
    ran = cli("export", "x.zip")
    assert ran.code == 0
    assert "warning: x.zip holds 1 original file that is not encrypted in it" in ran.err


def test_a_move_ends_with_what_to_set(filled: Cli, tmp_path: Path) -> None:
    ran = filled("migrate", "--to", "sqlite", "--path", tmp_path / "b")
    assert ran.code == 0
    assert "default: 3 documents" in ran.out
    assert "Both are equal. To use the new one, set:" in ran.out
    assert f"store:\n  ledger:\n    kind: sqlite\ndata_dir: {tmp_path / 'b'}" in ran.out
    assert filled("search", "dogs", "--data-dir", "b", "--json").json["hits"]
    ran = filled("migrate", "--to", "memory", "--json")
    assert (ran.code, ran.json["equal"], ran.json["to"]) == (0, True, "memory")
    assert ran.json["settings"] == {"store": {"vectors": {"kind": "memory"}}}


def test_a_move_that_is_not_equal_fails(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    async def search(*_: object) -> list[object]:
        return []

    monkeypatch.setattr("ragstone.stores.vectors.memory.MemoryProvider.search", search)
    ran = filled("migrate", "--to", "memory")
    assert ran.code == 1
    assert "The two differ." in ran.out


def test_what_a_move_cannot_use_is_said(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = filled("migrate", "--to", "faiss")
    assert (ran.code, "Unsupported vector DB provider: faiss" in ran.err) == (2, True)
    ran = filled("migrate", "--to", "memory", "--option", "fast")
    assert (ran.code, "--option fast is not KEY=VALUE" in ran.err) == (2, True)
    ran = filled("migrate", "--to", "memory", "--option", f"fast={'[' * 9000}")
    assert (ran.code, "store.vectors.options.fast is not an option of memory" in ran.err) == (2, True)
    ran = filled("migrate", "--to", "memory", "--option", "fast=1")
    assert (ran.code, "store.vectors.options.fast is not an option of memory" in ran.err) == (2, True)
    ran = filled("migrate", "--to", "postgres", "--dsn", "$NOT_THERE")
    assert (ran.code, "dsn refers to $NOT_THERE, which is not set" in ran.err) == (2, True)
    monkeypatch.setenv("MOVE_TO", "postgresql://ada:secret@127.0.0.1:1/none")
    ran = filled("migrate", "--to", "postgres", "--dsn", "$MOVE_TO")
    assert (ran.code, "cannot be reached" in ran.err, "secret" in ran.err + ran.out) == (1, True, False)
