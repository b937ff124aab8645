"""What people say of a document: its name, kind, title, description, category and tags, within their limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from ragstone.core.errors import InputError
from ragstone.core.types import Json, Metadata

FILENAME = 255
TITLE = 255
CATEGORY = 100
FILE_PATH = 500
FILE_TYPE = 20
SECTION_TITLE = 255
SAID_BY_US = (
    "source",
    "parent_doc_id",
    "attachment",
    "hidden_characters",
    "near_duplicate_of",
    "near_duplicate_similarity",
)
"""Metadata on where a document is from and what was found out about it: neither its file nor its uploader says it."""
_NAMED = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}


def checked_facts(title: str, metadata: Metadata) -> None:
    """Raise `InputError` for what is longer than it may be, is not what its name says, or is not for people to say."""
    within("the title", title, TITLE)
    for key in SAID_BY_US:
        if key in metadata:
            raise InputError(f"only Ragstone says '{key}' of a document", hint="leave it out of the metadata")
    if metadata.get("source_type", "upload") != "upload":
        raise InputError(
            "the 'source_type' of what is uploaded is 'upload'", hint="leave it out of the metadata"
        )
    for key, limit in (("description", None), ("category", CATEGORY)):
        value = metadata.get(key, "")
        if not isinstance(value, str):
            raise InputError(f"'{key}' is {type(value).__name__}, and has to be text")
        if limit is not None:
            within(f"'{key}'", value, limit)
    tags = metadata.get("tags", [])
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise InputError("'tags' has to be a list of texts", hint='such as ["fares", "ferry"]')


def within(what: str, text: str, most: int) -> str:
    """The text, or `InputError` when it is too long to be kept."""
    if len(text) > most:
        raise InputError(f"{what} has {len(text):,} characters; at most {most} are kept", hint="shorten it")
    return text


def filename_of(metadata: Metadata, uri: str) -> str:
    """The name a file came under, or the end of its address."""
    name = metadata.get("filename")
    return (name if isinstance(name, str) and name else uri.rsplit("/", 1)[-1])[:FILENAME]


def file_type_of(filename: str, media_type: str) -> str:
    """As the name ends, or else what the content was found to be."""
    suffix = PurePosixPath(filename).suffix.lower().lstrip(".")
    return (suffix or _NAMED.get(media_type) or media_type.rsplit("/", 1)[-1])[:FILE_TYPE]


def text_of(metadata: Metadata, key: str, most: int | None = None) -> str:
    """A text, or nothing: files may say anything under any name."""
    value = metadata.get(key)
    return value[:most] if isinstance(value, str) else ""


def tags_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """Tags as a list, also where a file has a single one."""
    tags = metadata.get("tags")
    if isinstance(tags, str):
        return (tags,) if tags else ()
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
