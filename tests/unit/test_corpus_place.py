from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragstone.core.errors import InputError, NotFoundError
from ragstone.engine import corpus as place
from ragstone.engine.corpus import find_corpus
from ragstone.settings.tree import Settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a data folder in it and a secret beside that."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "corpus").mkdir(parents=True)
    (tmp_path / "data" / "corpora" / "acme").mkdir(parents=True)
    for name in ("data/book.txt", "data/corpus/deep.txt", "data/corpora/acme/own.txt", "secret.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def found(path: str, root: str | None = None, tenant: str = "default", data_dir: str = "data") -> str:
    settings = Settings.model_validate({"data_dir": data_dir, "ingestion": {"corpus_root": root}})
    with closing(find_corpus(settings, tenant, path)) as corpus:
        return corpus.found.path.read_text()


@pytest.mark.parametrize("path", ["book.txt", "data/book.txt", "corpus/../book.txt", "./book.txt", "{}/data/book.txt"])
def test_a_corpus_in_the_data_root_is_found(folder: Path, path: str) -> None:
    assert found(path.format(folder)) == "data/book.txt"


def test_a_corpus_has_its_path_under_the_root_as_name(folder: Path) -> None:
    path = str(folder / "data/corpus/deep.txt")
    with closing(find_corpus(Settings(data_dir=Path("data")), "default", path)) as corpus:
        assert (corpus.found.relative, corpus.found.shown) == ("corpus/deep.txt", "corpus/deep.txt")


@pytest.mark.req("R-SEC-15")
@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "data/../../secret.txt",
        "corpus/../../secret.txt",
        "{}/secret.txt",
        "/etc/passwd",
        "link.txt",
        "corpus/linked/secret.txt",
        "..",
        "/",
        "../missing.txt",
    ],
)
def test_a_path_that_leaves_the_data_root_is_refused(folder: Path, path: str) -> None:
    (folder / "data" / "link.txt").symlink_to(folder / "secret.txt")
    (folder / "data" / "corpus" / "linked").symlink_to(folder)
    with pytest.raises(InputError, match="outside of the data root") as caught:
        found(path.format(folder))
    assert "corpus_root" in caught.value.advice


@pytest.mark.req("R-SEC-15")
def test_the_root_can_be_set(folder: Path) -> None:
    (folder / "shelf" / "acme").mkdir(parents=True)
    (folder / "shelf" / "acme" / "a.txt").write_text("theirs")
    (folder / "shelf" / "a.txt").write_text("everybody's")
    assert found("a.txt", "shelf") == "everybody's"
    assert found("data/a.txt", str(folder / "shelf")) == "everybody's"
    assert found("a.txt", "shelf/{tenant}", "acme") == "theirs"
    for path, root in (("book.txt", "shelf"), ("../a.txt", "shelf/{tenant}"), (f"{folder}/data/book.txt", "shelf")):
        with pytest.raises((InputError, NotFoundError)):
            found(path, root, "acme")


@pytest.mark.parametrize("root", [None, ".", "data"])
def test_what_ragstone_keeps_in_the_data_folder_is_out_of_reach(folder: Path, root: str | None) -> None:
    own = ["control.db", "web-results.db", "tenants/a/ledger.db", "documents/a/b/c.txt", "indices/chunks.json"]
    for name in own:
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not a corpus")
        with pytest.raises(InputError, match="outside"):
            found(str(path), root)
    assert found(str(folder / "data/book.txt"), root) == "data/book.txt"


def test_a_tenant_reads_in_a_folder_of_its_own(folder: Path) -> None:
    assert found("own.txt", tenant="acme") == "data/corpora/acme/own.txt"
    for path, tenant in (("corpora/acme/own.txt", "default"), ("../acme/own.txt", "other"), ("../../book.txt", "acme")):
        with pytest.raises(InputError, match="outside"):
            found(path, tenant=tenant)
    with pytest.raises(InputError, match="not a valid name"):
        found("x", tenant="../acme")


@pytest.mark.parametrize("path", ["", ".", "./", "a\0b", "\ud800.txt"])
def test_no_path_at_all_is_refused(folder: Path, path: str) -> None:
    with pytest.raises(InputError, match="no corpus path"):
        found(path)


@pytest.mark.parametrize("path", ["missing.txt", "corpus", "corpus/missing.txt"])
def test_what_is_not_there_is_not_found(folder: Path, path: str) -> None:
    with pytest.raises((NotFoundError, InputError)):
        found(path)


def test_a_name_that_is_too_long_is_an_error_of_ours(folder: Path) -> None:
    with pytest.raises((NotFoundError, InputError)):
        found(f"{'x' * 5000}.txt")


@pytest.mark.req("R-SEC-15")
@pytest.mark.parametrize("swapped", ["corpus", "corpus/deep.txt"])
def test_what_was_looked_at_is_what_is_read(folder: Path, swapped: str) -> None:
    outside = folder / "outside"
    outside.mkdir()
    (outside / "deep.txt").write_text("a secret")
    with closing(find_corpus(Settings(data_dir=Path("data")), "default", "corpus/deep.txt")) as corpus:
        (folder / "data" / swapped).rename(folder / "moved")
        (folder / "data" / swapped).symlink_to(outside / "deep.txt" if swapped.endswith("txt") else outside)
        assert (folder / "data/corpus/deep.txt").read_text() == "a secret"
        assert corpus.found.path.read_text() == "data/corpus/deep.txt"


@pytest.mark.req("R-SEC-15")
@pytest.mark.parametrize("swapped", ["corpus", "corpus/deep.txt"])
def test_a_link_that_turns_up_after_the_path_was_checked_is_not_followed(
    folder: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = folder / "outside"
    outside.mkdir()
    (outside / "deep.txt").write_text("a secret")
    original = place._may_be_read

    def checked(*args: Any) -> bool:
        allowed = original(*args)
        (folder / "data" / swapped).rename(folder / "moved")
        (folder / "data" / swapped).symlink_to(outside / "deep.txt" if swapped.endswith("txt") else outside)
        return allowed

    monkeypatch.setattr(place, "_may_be_read", checked)
    with pytest.raises((InputError, NotFoundError)):
        found("corpus/deep.txt")


def test_a_pipe_is_no_corpus_and_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "data" / "pipe.txt")
    with pytest.raises(NotFoundError):
        found("pipe.txt")
