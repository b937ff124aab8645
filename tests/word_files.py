"""Word files for tests: with the styles that texts have, without the hundred designs of tables and their copy.

They are all that takes long about a small file: its reader makes objects of 18,000 XML elements.
"""

from __future__ import annotations

import io
from functools import cache

import docx
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE

KEPT = ("Normal Table", "Table Grid")
"""What a table is without a design, and with lines."""


@cache
def _template() -> bytes:
    document = docx.Document()
    for style in list(document.styles):
        if style.type == WD_STYLE_TYPE.TABLE and style.name not in KEPT:
            style.delete()
    relations = document.part.rels
    for name in [name for name, one in relations.items() if one.reltype.endswith("/stylesWithEffects")]:
        del relations[name]
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def new_document() -> Document:
    """An empty document of the library's own template, less those designs."""
    return docx.Document(io.BytesIO(_template()))
