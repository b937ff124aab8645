"""The page of open requirements names open ones only, and the page of stores has the figures of the designs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.requirements import read_groups, read_marks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_every_id_of_the_page_exists_and_is_open() -> None:
    rows = re.findall(r"^\| (R-[^|]+?) \|", (DOCS / "requirements-open.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = [requirement for row in rows for requirement in row.split(", ")]
    known = {name for group in read_groups(DOCS / "reference" / "requirements.md") for name in group.ids}
    covered = {mark.requirement for mark in read_marks(ROOT / "tests")}
    assert len(named) == len(set(named)) > 20
    assert set(named) <= known
    assert set(named) & covered == set()


@pytest.mark.req("R-STO-32")
def test_the_page_of_stores_gives_the_figures_of_the_designs() -> None:
    page = (DOCS / "reference" / "stores" / "README.md").read_text(encoding="utf-8")
    figures = {
        name: (time, room) for name, time, room in re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", page, re.M)
    }
    assert figures == {
        "pgvector": ("10–50 ms", "10 million"),
        "pinecone": ("5–20 ms", "unlimited"),
        "weaviate": ("10–30 ms", "100 million"),
        "qdrant": ("5–25 ms", "100 million"),
        "milvus": ("5–20 ms", "unlimited"),
        "chroma": ("no figure given", "move on from 100,000 documents"),
    }
