"""Facts in tables of all kinds of files: asked for and verified, without a language model."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import openpyxl
import pytest
from reportlab.platypus import SimpleDocTemplate, Table
from tests.unit.ingest.parsers.odf_files import document, packed
from tests.word_files import new_document

from ragstone import Ragstone

KB = "tables"
Rows = Sequence[Sequence[str]]
HEAD = ("Harbour", "Berths", "Fee per night", "Depth", "Harbour master")
NAMES = {
    ".md": "Ansa Brevik Corvo",
    ".csv": "Dunmore Elvik Farsund",
    ".xlsx": "Grindal Hestvik Ilsund",
    ".docx": "Jorvik Kolvik Lunde",
    ".html": "Morvik Norsund Osvik",
    ".pdf": "Prestvik Qualsund Risor",
    ".odt": "Sandvik Tarsund Ulvik",
    ".ods": "Vardal Westvik Yttersund",
}


def rows_of(suffix: str) -> Rows:
    """Three harbours: their figures are those of no other."""
    first = list(NAMES).index(suffix) * 3
    return [
        (name, f"{110 + n:,}", f"{20 + n}.50 crowns", f"{3 + n}.2 m", f"Captain {name}sen")
        for n, name in enumerate(NAMES[suffix].split(), start=first)
    ]


def markdown(rows: Rows) -> bytes:
    lines = [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD), *rows)]
    return ("# Harbours of the coast\n\nAll of them are open.\n\n" + "\n".join(lines) + "\n").encode()


def csv(rows: Rows) -> bytes:
    return "\n".join(";".join(row) for row in (HEAD, *rows)).encode()


def html(rows: Rows) -> bytes:
    cells = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in (HEAD, *rows))
    return f"<html><body><h1>Harbours</h1><p>All are open.</p><table>{cells}</table></body></html>".encode()


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def xlsx(rows: Rows) -> bytes:
    book = openpyxl.Workbook()
    for row in (HEAD, *rows):
        book.worksheets[0].append(row)
    return saved(book.save)


def word(rows: Rows) -> bytes:
    page = new_document()
    table = page.add_table(0, len(HEAD))
    for row in (HEAD, *rows):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    return saved(page.save)


def pdf(rows: Rows) -> bytes:
    table = Table([HEAD, *rows], style=[("GRID", (0, 0), (-1, -1), 1, "black")])
    return saved(lambda buffer: SimpleDocTemplate(buffer, invariant=1).build([table]))


def open_document(rows: Rows, kind: str) -> bytes:
    def cells(row: Sequence[str]) -> str:
        return "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)

    lines = "".join(f"<table:table-row>{cells(row)}</table:table-row>" for row in (HEAD, *rows))
    return packed(document(f'<table:table table:name="Harbours">{lines}</table:table>', kind), kind)


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    ".md": markdown,
    ".csv": csv,
    ".xlsx": xlsx,
    ".docx": word,
    ".html": html,
    ".pdf": pdf,
    ".odt": lambda rows: open_document(rows, "text"),
    ".ods": lambda rows: open_document(rows, "spreadsheet"),
}


@pytest.fixture(scope="module")
def harbours(stone: Ragstone, tmp_path_factory: pytest.TempPathFactory) -> Ragstone:
    """A table in each kind of file, and one that is cut into many chunks."""
    folder = tmp_path_factory.mktemp("tables")
    for suffix, write in WRITERS.items():
        Path(folder, f"harbours{suffix}").write_bytes(write(rows_of(suffix)))
    many = [(f"Islet {n}", f"{500 + n}", f"{n}.25 crowns", "2 m", f"Mate {n}") for n in range(1000, 1120)]
    Path(folder, "islets.md").write_bytes(markdown(many))
    assert not stone.ingest(folder, kb=KB).failed
    return stone


@pytest.mark.parametrize("suffix", list(NAMES))
def test_a_cell_of_a_table_is_found_said_and_proven(harbours: Ragstone, suffix: str) -> None:
    name, berths, fee, depth, master = rows_of(suffix)[1]
    answer = harbours.ask(f"What is the fee per night in the harbour {name}?", kb=KB)
    assert answer.answer == (
        f"Harbour: {name}; Berths: {berths}; Fee per night: {fee}; Depth: {depth}; Harbour master: {master} [1][2]"
    )
    for cited in answer.citations:
        assert harbours.text(cited.document_id)[cited.start : cited.end] == cited.quote
        assert cited.uri.endswith(f"harbours{suffix}")
    assert harbours.check_receipt(harbours.receipt(answer, kb=KB)).holds


@pytest.mark.parametrize("suffix", list(NAMES))
def test_a_claim_about_it_is_verified_and_a_false_one_refuted(harbours: Ragstone, suffix: str) -> None:
    name, berths, _, _, _ = rows_of(suffix)[0]
    true = harbours.verify(f"The harbour {name} has {berths} berths.", kb=KB)
    assert (true.status, true.stance) == ("VERIFIED", "supported")
    false = harbours.verify(f"The harbour {name} has 99 berths.", kb=KB)
    assert (false.status, false.stance) == ("UNVERIFIED", "refuted")


def test_a_row_far_below_the_names_of_its_columns_is_said_with_them(harbours: Ragstone) -> None:
    answer = harbours.ask("How many berths does Islet 1107 have?", kb=KB)
    assert answer.answer == (
        "Harbour: Islet 1107; Berths: 1607; Fee per night: 1107.25 crowns; Depth: 2 m; Harbour master: Mate 1107 [1][2]"
    )
    row, head = answer.citations
    text = harbours.text(row.document_id)
    assert [text[one.start : one.end] for one in (row, head)] == [row.quote, head.quote]
    assert row.start - head.end > 5000
    assert harbours.check_receipt(harbours.receipt(answer, kb=KB)).holds
