"""Settings of collections that are built from one corpus file."""

from __future__ import annotations

from pathlib import Path

from ragstone.settings.base import SettingsModel


class IngestionSettings(SettingsModel):
    """`data` at the start of a path is the data folder, as in the design that these keys are from."""

    corpus_root: str | None = None
    """The folder that a corpus may be read from; `{tenant}` in it gives each tenant a folder of its own."""
    corpus_path: Path = Path("data/corpus.txt")
    """The file that `ragstone corpus build` reads when none is named."""
    bm25_index_path: Path = Path("data/indices/bm25_index.pkl")
    """The BM25 index of the collection, for those who read it as a file."""
    chunk_metadata_path: Path = Path("data/indices/chunks.json")
    """The metadata of its chunks by chunk id."""
