"""A small fictional corpus for the demo, and labelled questions about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

QUESTIONS: tuple[str, ...] = (
    "How many porpoises live in Kestrel Sound?",
    "When does MV Tarrant go to dry dock?",
    "How long are places held before a booking has to be paid?",
)
"""Answered by the PDF, the DOCX and a Markdown page."""
UNANSWERABLE = "What is the salary of the company's chief accountant?"
"""Nothing in the corpus says it."""


class Golden(NamedTuple):
    """A query and the document, by its path in the corpus, that answers it."""

    query: str
    document: str


def corpus_path() -> Path:
    """Return the folder with the sample documents."""
    return Path(__file__).parent / "corpus"


def golden() -> tuple[Golden, ...]:
    """Queries about the corpus, labelled by reading it."""
    lines = (Path(__file__).parent / "golden.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Golden(**json.loads(line)) for line in lines)
