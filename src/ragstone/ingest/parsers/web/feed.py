"""The process that reads one feed: feedparser's regular expressions can be made to run for hours.

It starts for each feed, and so loads nothing but what it needs.
"""

from __future__ import annotations

import io
import json
import os
import sys
from time import struct_time
from typing import Any

from ragstone.ingest.parsers.sandbox import limits as sandbox


def main() -> None:
    """Read a feed from the standard input and write it as JSON.

    The arguments are the limits of memory and time, and the parent's process id.
    """
    sandbox.confine(int(sys.argv[1]), int(sys.argv[3]))
    content = sys.stdin.buffer.read()
    answer = os.dup(1)
    os.dup2(2, 1)  # nothing that a library prints may get into the answer
    import feedparser

    sandbox.allow_cpu(float(sys.argv[2]))
    # A stream and not the bytes: feedparser takes bytes for the name of a file and tries to open it.
    parsed = feedparser.parse(
        io.BytesIO(content), sanitize_html=False, resolve_relative_uris=False, response_headers={}
    )
    said = {
        "version": str(parsed.get("version") or ""),
        "title": str(parsed.feed.get("title") or ""),
        "entries": [_plain(entry) for entry in parsed.entries],
    }
    with os.fdopen(answer, "wb") as replies:
        replies.write(json.dumps(said).encode())


def _plain(entry: Any) -> dict[str, Any]:
    bodies = [*entry.get("content", []), entry.get("summary_detail") or {}]
    body = max(bodies, key=lambda part: len(part.get("value") or ""))
    return {
        "id": str(entry.get("id") or ""),
        "link": str(entry.get("link") or ""),
        "title": str(entry.get("title") or ""),
        "author": str(entry.get("author") or "")[:10_000],
        "content": str(body.get("value") or ""),
        "is_html": body.get("type") != "text/plain",
        # feedparser warns when it is asked for the one and gives the other.
        "moments": [
            list(parts[:6])
            for key in ("published_parsed", "updated_parsed")
            if isinstance(parts := dict.get(entry, key), struct_time)
        ],
    }
