"""Ingest and ask in a process that may open no socket: nothing of it needs a network, not even loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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

class Without:  # a finder that does not see what extras install
    names = frozenset(json.loads(sys.argv[2]))

    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *where):
        return None if name.partition(".")[0] in self.names else self.finder.find_spec(name, *where)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]

from ragstone import Ragstone
from ragstone.samples import QUESTIONS, corpus_path
from ragstone.serve.http.app import build_app

with Ragstone(data_dir=sys.argv[1]) as stone:
    report = stone.ingest(corpus_path())
    again = stone.ingest(corpus_path())
    answer = stone.ask(QUESTIONS[0])
    routes = len(build_app(stone.engine).openapi()["paths"])
print(json.dumps({
    "added": report.added,
    "failed": [failure.error for failure in report.failed],
    "degraded": [*report.degraded, *answer.degraded],
    "unchanged": again.unchanged,
    "answer": answer.answer,
    "routes": routes,
}))
"""


def optional_modules() -> list[str]:
    """The modules of the packages that only extras ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {distribution_name(line) for line in project["dependencies"]}
    extras = {distribution_name(line) for lines in project["optional-dependencies"].values() for line in lines}
    optional = extras - needed - {"ragstone"}
    owners = packages_distributions()
    return sorted(name for name, found in owners.items() if optional >= {distribution_name(one) for one in found})


def distribution_name(line: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", line)[0].lower().replace("_", "-")


@pytest.mark.req("R-STO-28", "R-CLI-34")
def test_the_default_configuration_works_with_every_socket_closed_and_no_extra(data_dir: Path, tmp_path: Path) -> None:
    missing = optional_modules()
    assert {"chromadb", "openai", "psycopg", "mcp", "redis", "onnxruntime"} <= set(missing)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAGSTONE_", "HF_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(data_dir), json.dumps(missing)],
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
    assert result["routes"] > 30
