"""Log lines of the service and of workers: JSON for programs, text for people, neither with secrets.

A line says what happened, for which request and tenant. Exceptions are logged by their type and the lines of code that
they passed through, without their message: that of an unexpected one may hold a query or a document.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr

from ragstone.core.audit import log_fields
from ragstone.core.errors import RagstoneError

if TYPE_CHECKING:
    from ragstone.settings.tree import Settings

HIDDEN = "[hidden]"
SHORTEST_SECRET = 6
"""Shorter ones, such as `none` for a local server, would be found in ordinary words."""
MOST_CHARS = 2000
PATTERNS = re.compile(
    r"rgs_[0-9a-f]{16}_[0-9A-Za-z_-]{43}"  # keys of our own
    r"|(?<=://)[^/\s@]{1,500}(?=@)"  # name and password in an address
    r"|(?<=[Bb]earer )[^\s\"']{4,2000}"
)


class SecretFilter:
    """Hides the secrets of the settings, API keys and passwords in addresses."""

    def __init__(self, secrets: Iterator[str]) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def hide(self, text: str) -> str:
        """Return the text without secrets."""
        text = self._known.sub(HIDDEN, text) if self._known else text
        return PATTERNS.sub(HIDDEN, text)


class LineFormatter(logging.Formatter):
    """Writes a record as one line."""

    def __init__(self, secrets: SecretFilter, *, as_json: bool) -> None:
        super().__init__()
        self._secrets = secrets
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        moment = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._secrets.hide(record.getMessage())[:MOST_CHARS],
            **log_fields(),
            **{name: self._clean(value) for name, value in getattr(record, "facts", {}).items()},
        }
        if record.exc_info and record.exc_info[1]:
            fields |= _describe_error(record.exc_info[1])
        if self._as_json:
            return json.dumps(fields, ensure_ascii=False, default=str)
        shown = " ".join(f"{name}={value}" for name, value in list(fields.items())[4:])
        line = f"{moment:%H:%M:%S} {record.levelname} {fields['message']} {shown}".rstrip()
        return "".join(character if character.isprintable() else " " for character in line)

    def _clean(self, value: object) -> object:
        return self._secrets.hide(value)[:MOST_CHARS] if isinstance(value, str) else value


def _describe_error(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    described: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, RagstoneError):
        described["code"] = error.code
    return {**described, "stack": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]}


@contextmanager
def write_logs(settings: Settings, *, as_json: bool | None = None) -> Iterator[None]:
    """Write log lines to stderr while the block runs; without `as_json` as the settings say."""
    if as_json is None:
        chosen = settings.service.log
        as_json = chosen == "json" or (chosen == "auto" and not sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(SecretFilter(_secrets_of(settings)), as_json=as_json))
    root, own = logging.getLogger(), logging.getLogger("ragstone")
    before = root.handlers[:], root.level, own.level
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    own.setLevel(min(logging.INFO, own.level or logging.INFO))
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        own.setLevel(before[2])


def _secrets_of(part: object) -> Iterator[str]:
    """Yield every secret of the settings, at whatever depth."""
    match part:
        case SecretStr():
            yield part.get_secret_value()
        case BaseModel():
            for name in type(part).model_fields:
                yield from _secrets_of(getattr(part, name))
        case Mapping():
            for value in part.values():
                yield from _secrets_of(value)
        case list() | tuple():
            for value in part:
                yield from _secrets_of(value)
