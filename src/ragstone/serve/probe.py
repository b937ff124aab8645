"""`python -m ragstone.serve.probe URL`: exit with 0 if a service is healthy, for images that have no curl."""

from __future__ import annotations

import sys
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

SECONDS = 8.0
"""Less than the ten seconds after which a container's health check is given up, so that the reason is shown."""


def probe(url: str, seconds: float = SECONDS) -> str:
    """Return why a service is not healthy; empty when it is. Proxies of the environment are not asked."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=seconds)
    try:
        connection.request("GET", parts.path or "/")
        reply = connection.getresponse()
        said = reply.read(2000).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        return f"{url} does not answer: {error}"
    finally:
        connection.close()
    return "" if reply.status == 200 else f"{url} answered {reply.status}: {said}"


if __name__ == "__main__":
    sys.exit(probe(sys.argv[1]) or 0)
