"""`relay.py SOCKET -m MODULE …` or `… -c CODE …`: have a copy of the warm process run it, and end as it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path


def main(path: str, *arguments: str) -> int:
    """Return how the copy ended."""
    given = {"arguments": arguments, "environment": dict(os.environ), "folder": str(Path.cwd())}
    content = json.dumps(given).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [len(content).to_bytes(4, "big")], [0, 1, 2])
        connection.sendall(content)
        child = int.from_bytes(connection.recv(4), "big")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(child, number))
        return int.from_bytes(connection.recv(4), "big", signed=True)


if __name__ == "__main__":
    ended = main(*sys.argv[1:])
    if ended < 0:
        if -ended != signal.SIGKILL:
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    sys.exit(ended)
