"""DOCX: checked as an archive and as XML first, then read through the HTML walker."""

from __future__ import annotations

import io

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, ParseOptions
from ragstone.ingest.parsers.office.archive import office_properties, open_archive

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Quote'] => blockquote > p:fresh
p[style-name='Intense Quote'] => blockquote > p:fresh
p[style-name='Code'] => pre:separator('\\n')
"""


def parse_docx(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a word processor's document: headings, lists, tables, notes."""
    import mammoth

    from ragstone.ingest.parsers.web.html import parse_markup

    with open_archive(content, name, "DOCX", options) as archive:
        properties = office_properties(archive, name, "DOCX")
    converted = mammoth.convert_to_html(
        io.BytesIO(content), style_map=_STYLES, convert_image=mammoth.images.img_element(lambda _: {})
    )
    parsed = parse_markup(converted.value, name, media_type=MEDIA_TYPE)
    title = properties.pop("title", "") or parsed.title
    return Parsed(parsed.text, parsed.blocks, title, MEDIA_TYPE, properties, parsed.warnings)
