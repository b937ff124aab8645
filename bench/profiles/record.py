"""The record of a measurement, and the hashes that tell whether it is still about these files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from bench.takaro import labels

RECORDS = Path("docs/profiles/records.json")
PROFILES = ("ghostwriter", "takaro", "tulia", "kosmos", "rpg")
LABELS = "takaro labels"


@dataclass(frozen=True)
class Record:
    """What was measured of one profile, with which files, models and stand-ins."""

    profile: str
    profile_sha256: str
    models: Mapping[str, str]
    data: Mapping[str, str]
    """By name, the SHA-256 of each data set."""
    stand_ins: tuple[str, ...]
    figures: Mapping[str, float]
    store: Mapping[str, str] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    """Stages that at least one search skipped."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """Machine, load, commit and date of the run."""


def read_records(path: Path = RECORDS) -> dict[str, Record]:
    """Return the records of a file by profile; none when there is no file."""
    if not path.exists():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))["profiles"]
    made = (
        Record(**{**entry, "stand_ins": tuple(entry["stand_ins"]), "degraded": tuple(entry["degraded"])})
        for entry in entries
    )
    return {record.profile: record for record in made}


def write_records(records: Iterable[Record], path: Path = RECORDS) -> None:
    """Write the records in the order of the profiles."""
    ordered = sorted(records, key=lambda record: PROFILES.index(record.profile))
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"profiles": [asdict(record) for record in ordered]}, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def hash_profile(name: str) -> str:
    """Return the SHA-256 of a profile's file."""
    return _hash([resources.files("ragstone.settings.profiles").joinpath(f"{name}.yaml").read_bytes()])


def hash_labels() -> str:
    """Return the SHA-256 of the labelled queries and their judgements."""
    files = [labels.FOLDER / "queries.jsonl", *sorted((labels.FOLDER / "qrels").glob("*.tsv"))]
    return _hash(file.read_bytes() for file in files)


def hash_folder(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all files under a folder."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return _hash(part for file in files for part in (file.relative_to(folder).as_posix().encode(), file.read_bytes()))


def hash_texts(texts: Iterable[str]) -> str:
    """Return the SHA-256 of texts in order."""
    return _hash(text.encode() for text in texts)


def _hash(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        # The length keeps two files from reading as one.
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
