from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.samples import QUESTIONS, UNANSWERABLE, corpus_path, golden

FILES = sorted(path for path in corpus_path().rglob("*") if path.is_file())


def relative(path: Path) -> str:
    return path.relative_to(corpus_path()).as_posix()


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_every_sample_is_read_without_a_warning(path: Path) -> None:
    parsed = parse(path.read_bytes(), path.name)
    assert broken_rules(parsed) == []
    assert parsed.warnings == ()
    assert len(parsed.blocks) >= 5
    assert parsed.title or path.suffix == ".txt"


def test_the_corpus_has_every_kind_of_file() -> None:
    suffixes = [path.suffix for path in FILES]
    assert {suffix: suffixes.count(suffix) for suffix in sorted(set(suffixes))} == {
        ".docx": 1,
        ".html": 2,
        ".md": 4,
        ".pdf": 1,
        ".txt": 2,
    }


def test_labels_name_documents_and_every_document_has_some() -> None:
    labelled = golden()
    assert len(labelled) >= 25
    assert {label.document for label in labelled} == {relative(path) for path in FILES}
    assert len({label.query for label in labelled}) == len(labelled)
    assert UNANSWERABLE not in {label.query for label in labelled}


def test_the_demo_asks_a_pdf_a_docx_and_a_page() -> None:
    documents = {label.query: label.document for label in golden()}
    assert [Path(documents[question]).suffix for question in QUESTIONS] == [".pdf", ".docx", ".md"]


def test_the_report_has_columns_pages_and_no_running_feet() -> None:
    path = corpus_path() / "research" / "porpoise-survey-2025.pdf"
    parsed = parse(path.read_bytes(), path.name)
    assert [(block.level, block.label, block.page) for block in parsed.blocks if block.level] == [
        (1, "Harbour porpoises in Kestrel Sound", 1),
        (2, "Summary", 1),
        (2, "Methods", 2),
        (3, "Hydrophones", 2),
        (3, "Counts from the bridge", 2),
        (3, "Photographs from the air", 2),
        (2, "Results", 3),
        (3, "Numbers", 3),
        (3, "Where they are", 3),
        (3, "Calves", 3),
        (2, "Recommendations", 3),
    ]
    assert "Hennay Field Station ·" not in parsed.text
    assert "Page 2" not in parsed.text


@pytest.fixture(scope="module")
def make_samples() -> ModuleType:
    script = Path(__file__).parents[4] / "scripts" / "make_samples.py"
    spec = importlib.util.spec_from_file_location("make_samples", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("maker", "name"),
    [
        ("porpoise_survey", "research/porpoise-survey-2025.pdf"),
        ("winter_overhaul_plan", "staff/winter-overhaul-plan.docx"),
    ],
)
def test_the_script_writes_what_is_in_the_corpus(make_samples: ModuleType, maker: str, name: str) -> None:
    made = getattr(make_samples, maker)()
    assert made == getattr(make_samples, maker)()
    assert parse(made, name) == parse((corpus_path() / name).read_bytes(), name)
