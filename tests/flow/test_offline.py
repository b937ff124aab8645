"""Ingest and ask in a process that may open no socket: nothing of it needs a network, not even loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import socket, sys

class Blocked(RuntimeError):
    pass

def refuse(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        address = arguments[1] if event in ("socket.connect", "socket.sendto") else arguments[0]
        if not isinstance(address, str) or event.startswith("socket.get"):
            raise Blocked(f"{event} {address}")

sys.addaudithook(refuse)
try:
    socket.create_connection(("127.0.0.1", 9))
except Blocked:
    pass
else:
    sys.exit("the hook does not block")

import json
from ragstone import Ragstone
from ragstone.samples import QUESTIONS, corpus_path

with Ragstone(data_dir=sys.argv[1]) as stone:
    report = stone.ingest(corpus_path())
    again = stone.ingest(corpus_path())
    answer = stone.ask(QUESTIONS[0])
print(json.dumps({
    "added": report.added,
    "failed": [failure.error for failure in report.failed],
    "degraded": [*report.degraded, *answer.degraded],
    "unchanged": again.unchanged,
    "answer": answer.answer,
}))
"""


@pytest.mark.req("R-STO-28")
def test_the_default_configuration_works_with_every_socket_closed(data_dir: Path, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAGSTONE_", "HF_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(data_dir)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["answer"].startswith("Kestrel Sound is home to about 340 harbour porpoises")
    assert (result["added"], result["unchanged"], result["failed"], result["degraded"]) == (10, 10, [], [])
