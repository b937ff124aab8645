"""A BM25 index as a file: arrays behind a header, read without running anything that the file says.

The name is kept from a time when such files were pickles. One that is not ours, a pickle among them, is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import NotFoundError, StoreCorrupt, StoreError
from ragstone.language.analyzer import FINGERPRINT
from ragstone.stores.corpus.atomic_file import write_atomically
from ragstone.stores.lexical.postings import PackedPostings, PostingsMatrix

DEFAULT_PATH = Path("data/indices/bm25_index.pkl")
MAGIC = b"ragstone bm25 index 1\n"
LARGEST_HEADER = 4096
ARRAYS: Mapping[str, str] = {
    "numbers": "<i8",
    "lengths": "<f4",
    "terms": "<u8",
    "bounds": "<i8",
    "rows": "<i4",
    "counts": "<f4",
    "ids": "<u1",
}
"""The parts of the file behind its header, in this order."""
REBUILD = "build it again: save_index writes it from the ledger"


@dataclass(frozen=True, slots=True)
class Origin:
    """The kb of an index, and the last change of the ledger that is in it."""

    tenant_id: str = ""
    kb_id: int = 0
    sequence: int = 0


NOBODYS = Origin()


def build_index(chunks: Iterable[tuple[int, str, str]]) -> PostingsMatrix:
    """Return an index of chunks, each given as number, id and analysed text."""
    index = PostingsMatrix()
    given = list(chunks)
    if given:
        index.put(*zip(*given, strict=True))
    return index


def save_index(index: PostingsMatrix, path: Path = DEFAULT_PATH, origin: Origin = NOBODYS) -> None:
    """Write an index, whole or not at all, readable by its owner only."""
    packed = index.pack()
    arrays = {name: _bytes_of(packed, name) for name in ARRAYS}
    digest = hashlib.sha256()
    for data in arrays.values():
        digest.update(data)
    header = {
        "analyzer": FINGERPRINT,
        "tenant": origin.tenant_id,
        "kb": origin.kb_id,
        "sequence": origin.sequence,
        "bytes": {name: len(data) for name, data in arrays.items()},
        "sha256": digest.hexdigest(),
    }
    try:
        write_atomically(path, [MAGIC, json.dumps(header).encode() + b"\n", *arrays.values()])
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}", hint="name a folder that can be") from error


def load_index(path: Path = DEFAULT_PATH) -> tuple[PostingsMatrix, Origin]:
    """Read what `save_index` wrote; anything else is refused."""
    try:
        with path.open("rb") as file:
            known = file.read(len(MAGIC)) == MAGIC
            header = file.readline(LARGEST_HEADER) if known else b""
            body = file.read() if known else b""
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no BM25 index at {path}", hint=REBUILD) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}", hint=REBUILD) from error
    if not known:
        raise StoreCorrupt(f"{path} is not a BM25 index of Ragstone", hint=REBUILD)
    try:
        return _parse(header, body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreCorrupt(f"{path} is a damaged BM25 index: {error}", hint=REBUILD) from error


def _parse(header: bytes, body: bytes) -> tuple[PostingsMatrix, Origin]:
    facts = json.loads(header)
    if facts["analyzer"] != FINGERPRINT:
        raise ValueError(f"its words were cut by {facts['analyzer']!r:.80}, not by {FINGERPRINT}")
    sizes = [int(facts["bytes"][name]) for name in ARRAYS]
    if min(sizes) < 0 or sum(sizes) != len(body):
        raise ValueError("it is shorter or longer than it says")
    if hashlib.sha256(body).hexdigest() != facts["sha256"]:
        raise ValueError("its content was changed")
    edges = np.cumsum([0, *sizes]).tolist()
    arrays = {
        name: np.frombuffer(body[start:end], kind)
        for (name, kind), start, end in zip(ARRAYS.items(), edges[:-1], edges[1:], strict=True)
    }
    ids = json.loads(arrays.pop("ids").tobytes())
    packed = PackedPostings(ids, **arrays)
    _check(packed)
    return PostingsMatrix.unpack(packed), Origin(str(facts["tenant"]), int(facts["kb"]), int(facts["sequence"]))


def _check(packed: PackedPostings) -> None:
    """Refuse arrays that do not fit together: a digest tells of accidents, not of intent."""
    count = len(packed.numbers)
    if not isinstance(packed.ids, list) or not all(isinstance(chunk_id, str) for chunk_id in packed.ids):
        raise ValueError("its ids are not a list of ids")
    fits = (
        len(packed.ids) == len(packed.lengths) == count
        and len(np.unique(packed.numbers)) == count
        and len(packed.bounds) == len(packed.terms) + 1
        and len(packed.rows) == len(packed.counts) == packed.bounds[-1]
        and packed.bounds[0] == 0
        and _rises(packed.bounds)
        and _rises(packed.terms)
        and (not len(packed.rows) or (packed.rows.min() >= 0 and packed.rows.max() < count))
        and bool(np.isfinite(packed.counts).all() and np.isfinite(packed.lengths).all())
        and bool((packed.counts > 0).all() and (packed.lengths >= 0).all())
    )
    if not fits:
        raise ValueError("its parts do not fit together")


def _rises(values: NDArray[Any]) -> bool:
    return bool((values[1:] > values[:-1]).all())


def _bytes_of(packed: PackedPostings, name: str) -> bytes:
    if name == "ids":
        return json.dumps(packed.ids).encode()
    array: NDArray[Any] = getattr(packed, name)
    return array.astype(ARRAYS[name]).tobytes()
