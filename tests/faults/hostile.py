"""Hostile files of every kind: each is made when it is asked for, and is the same on every run."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.hostile_archives import epub_files, zip_files
from tests.faults.hostile_damage import damaged_files, misnamed_files
from tests.faults.hostile_data import code_files, csv_files, json_files
from tests.faults.hostile_file import Bait, Hostile
from tests.faults.hostile_mail import mail_files, mbox_files
from tests.faults.hostile_odf import odf_files
from tests.faults.hostile_office import docx_files, pptx_files
from tests.faults.hostile_pdf import pdf_files
from tests.faults.hostile_pictures import picture_files
from tests.faults.hostile_text import html_files, markdown_files, text_files
from tests.faults.hostile_xlsx import xlsx_files


def hostile_files(bait: Bait) -> Iterator[Hostile]:
    """All of them, in an order that stays."""
    yield from text_files()
    yield from markdown_files()
    yield from html_files(bait)
    yield from csv_files()
    yield from json_files()
    yield from code_files()
    yield from docx_files(bait)
    yield from pptx_files(bait)
    yield from xlsx_files(bait)
    yield from odf_files(bait)
    yield from epub_files(bait)
    yield from zip_files()
    yield from mail_files(bait)
    yield from mbox_files()
    yield from pdf_files(bait)
    yield from picture_files()
    yield from damaged_files()
    yield from misnamed_files()
