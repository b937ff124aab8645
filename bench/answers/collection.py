"""The collection: pages with questions and claims in two halves and on further manuals, prose with statements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Half = Literal["develop", "measured", "further", "reading", "everyday"]
HALVES: tuple[Half, ...] = ("develop", "measured")
FITTED: tuple[Half, ...] = ("develop", "further")
"""What weights are fitted to; what is further is in neither half, nor is what the reader is trained on."""
READ: tuple[Half, ...] = ("reading", "everyday")
"""What the reader is trained on: manuals, and texts that are none."""
FOLDER = Path(__file__).parent
UNANSWERABLE = "unanswerable"


@dataclass(frozen=True)
class AskedQuestion:
    """A question, and the facts that its answer must hold: of each, one spelling suffices."""

    id: str
    kind: str
    text: str
    gold: str
    facts: Sequence[Sequence[str]]
    earlier: Sequence[str]
    own_wording: bool
    document: str


@dataclass(frozen=True)
class LabelledClaim:
    """A claim about the pages, and whether they say so."""

    id: str
    kind: str
    text: str
    is_true: bool
    gold: str
    document: str


@dataclass(frozen=True)
class LabelledStatement:
    """A sentence that cites a passage of prose, and whether the passage says it."""

    id: str
    kind: str
    text: str
    is_true: bool
    document: str
    passage: str
    source: str


@dataclass(frozen=True)
class PlantedReply:
    """A reply of a misled model: a true sentence of a passage, and a payload that the passage does not hold."""

    kind: str
    text: str
    payload: str
    document: str
    passage: str


@dataclass(frozen=True)
class Collection:
    """One part of the collection: where the files are, and what is asked about them."""

    half: Half
    pages: Path
    prose: Path
    questions: Sequence[AskedQuestion]
    claims: Sequence[LabelledClaim]
    statements: Sequence[LabelledStatement]
    planted: Sequence[PlantedReply]


def load_collection(half: Half, folder: Path = FOLDER) -> Collection:
    """Return one part of the collection; what is not there of it is empty."""
    own, prose = folder / half, folder / "prose"
    return Collection(
        half,
        own / "pages",
        prose / half,
        [_question(line) for line in _read_lines(own / "questions.jsonl")],
        [_claim(line) for line in _read_lines(own / "claims.jsonl")],
        [_statement(line) for line in _read_lines(prose / f"statements.{half}.jsonl")],
        [_planted(line) for line in _read_lines(prose / "payloads.jsonl") if line["id"].startswith(f"payload-{half}")],
    )


def _read_lines(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def _question(line: dict[str, Any]) -> AskedQuestion:
    kind = f"{UNANSWERABLE}: {line['why']}" if line["kind"] == UNANSWERABLE else line["kind"]
    return AskedQuestion(
        line["id"],
        kind,
        line["question"],
        line["gold"],
        line["facts"],
        line.get("earlier", ()),
        line.get("wording") == "own",
        line.get("document", ""),
    )


def _claim(line: dict[str, Any]) -> LabelledClaim:
    return LabelledClaim(line["id"], line["kind"], line["claim"], line["true"], line["gold"], line.get("document", ""))


def _statement(line: dict[str, Any]) -> LabelledStatement:
    return LabelledStatement(
        line["id"],
        line["kind"],
        line["statement"],
        line["true"],
        line["document"],
        line["passage"],
        line.get("source", ""),
    )


def _planted(line: dict[str, Any]) -> PlantedReply:
    return PlantedReply("of the collection", line["reply"], line["payload"], line["document"], line["passage"])
