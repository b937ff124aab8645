"""Compare JSON with files under `tests/golden`; `GOLDEN=write` in the environment writes them."""

from __future__ import annotations

import json
import os
import re
from difflib import unified_diff
from pathlib import Path
from typing import Any

from ragstone.samples import corpus_path

FOLDER = Path(__file__).parent / "golden"
WORDS = frozenset({
    "about", "detail", "error", "fix", "get", "hint", "message", "reason", "repair", "skipped",
})  # fmt: skip
"""Fields whose value is a sentence for people: only that there is one counts."""
SIZES = frozenset({"bytes", "cores", "memory_mb", "originals"})
LISTS = frozenset({"degraded", "queries", "remarks", "warnings"})
NAMED = frozenset({"digest", "hash", "answer_hash", "key", "path", "processor", "python", "system", "worker", "engine"})
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)")
ID = re.compile(r"\b[0-9a-f]{16,64}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def check_golden(name: str, value: Any) -> None:
    """Compare a JSON value with its file: the order of keys, nulls and empty fields count."""
    file = FOLDER / f"{name}.json"
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    expected = file.read_text(encoding="utf-8")
    difference = unified_diff(expected.splitlines(), text.splitlines(), file.name, "now", lineterm="", n=6)
    assert text == expected, "\n".join(difference)


def steady(value: Any, here: Path, key: str = "") -> Any:
    """Return the value without what differs from run to run: ids, times, sizes, places and wording."""
    match value:
        case dict():
            return {ID.sub("<id>", name): steady(inner, here, name) for name, inner in value.items()}
        case list() if key in LISTS:
            return ["<text>"] if value else []
        case list() if key == "trace":  # both arms run at once, and only a search that had to wait tells of the queue
            return sorted((steady(inner, here) for inner in value if inner["stage"] != "queue"), key=str)
        case list():
            return [steady(inner, here, key) for inner in value]
        case bool() | None:
            return value
        case int() if key in SIZES:
            return "<integer>"
        case float():
            return "<number>"
        case str() if key == "skipped" or (value and (key in WORDS or key in NAMED)):
            return "<text>"
        case str():
            told = (
                value.replace(str(corpus_path()), "<samples>")
                .replace(str(here), "<here>")
                .replace(str(here.parent), "<base>")
            )
            return MOMENT.sub("<moment>", ID.sub("<id>", told))
        case _:
            return value
