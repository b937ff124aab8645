from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.ingest.sources.source_kit import context, pages, write

from ragstone.core.errors import SourceError
from ragstone.core.types import Failure, Item
from ragstone.ingest.sources.files.source import CorpusConfig, CorpusSource
from ragstone.settings.tree import LimitSettings


@pytest.mark.req("R-ING-08")
async def test_one_text_file_is_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data" / "corpus.txt", "All of it.")
    (page,) = await pages(CorpusSource(CorpusConfig(), "corpus", context()))
    (item,) = page.items
    assert isinstance(item, Item)
    assert (item.source, item.external_id, item.uri) == ("corpus", "data/corpus.txt", "corpus.txt")
    assert item.content == b"All of it."
    assert item.metadata == {"source_type": "corpus", "filename": "corpus.txt", "modified_date": item.modified_at}
    assert page.listed == {"data/corpus.txt"}


@pytest.mark.req("R-ING-08")
async def test_the_path_can_be_set(tmp_path: Path) -> None:
    file = write(tmp_path / "all.txt", "All of it.")
    (page,) = await pages(CorpusSource(CorpusConfig(corpus_path=file), "corpus", context()))
    assert page.listed == {file.as_posix()}


async def test_a_missing_file_is_an_error_and_no_deletion(tmp_path: Path) -> None:
    config = CorpusConfig(corpus_path=tmp_path / "gone.txt")
    with pytest.raises(SourceError) as caught:
        await pages(CorpusSource(config, "corpus", context()))
    assert str(caught.value) == f"the corpus {tmp_path / 'gone.txt'} of source 'corpus' does not exist"
    assert caught.value.hint == "set corpus_path to a text file"


async def test_a_file_over_the_limit_stays_listed(tmp_path: Path) -> None:
    file = write(tmp_path / "all.txt", b"x" * (1024 * 1024 + 1))
    source = CorpusSource(CorpusConfig(corpus_path=file), "corpus", context(LimitSettings(file_mb=1)))
    (page,) = await pages(source)
    assert page.items == (Failure("all.txt", "too_large", "all.txt has 1 MB; limits.file_mb allows 1"),)
    assert page.listed == {file.as_posix()}
