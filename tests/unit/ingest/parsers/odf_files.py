"""Small OpenDocument files, part by part as an office program would pack them."""

from __future__ import annotations

import io
import zipfile

SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for prefix, space in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
        ("presentation", "presentation"), ("meta", "meta"), ("svg", "svg-compatible"),
    )
) + ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'  # fmt: skip
TYPES = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}


def document(inner: str, kind: str = "text", styles: str = "") -> str:
    """The content of a file: its body and the styles that only it uses."""
    return (
        f"<office:document-content {SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{inner}</office:{kind}></office:body></office:document-content>"
    )


def meta(inner: str) -> str:
    """What a file says about itself."""
    return f"<office:document-meta {SPACES}><office:meta>{inner}</office:meta></office:document-meta>"


def packed(content: str | bytes, kind: str = "text", **parts: str | bytes) -> bytes:
    """A whole file; the name of another part is that of its argument with a suffix, as in `styles` for styles.xml."""
    named = {f"{name}.xml": part for name, part in parts.items()}
    return pack({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content, **named})


def pack(parts: dict[str, str | bytes]) -> bytes:
    """A ZIP of these parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def flat(inner: str, kind: str = "text", about: str = "") -> bytes:
    """The same as one piece of XML."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document {SPACES} office:version="1.3" '
        f'office:mimetype="application/vnd.oasis.opendocument.{kind}"><office:meta>{about}</office:meta>'
        f"<office:body><office:{kind}>{inner}</office:{kind}></office:body></office:document>"
    ).encode()
