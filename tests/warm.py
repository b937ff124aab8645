"""Processes that need not import Ragstone: each is a copy of one that has it imported.

An interpreter that imports Ragstone and MCP works for two to three seconds before it does what a test looks at. Take
`warm_python()` in place of `sys.executable` where the process is the point of a test and its first second is not:

    process = subprocess.Popen([*warm_python(), "-m", "ragstone", "jobs", "--watch"], cwd=tmp_path)

The command is `relay.py`: it hands its arguments, environment, folder and standard streams over a socket to the warm
process, passes signals on, and ends as the copy ends.
"""

from __future__ import annotations

import array
import atexit
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.leaving import leave

RELAY = Path(__file__).with_name("relay.py")
ROOT = Path(__file__).resolve().parent.parent


@cache
def warm_python() -> tuple[str, ...]:
    """Return a command that takes the arguments of an interpreter; what it asks ends with this process.

    `make test` starts one warm process for all groups of tests, and says in `WARM_PYTHON` where it listens.
    """
    if shared := os.environ.get("WARM_PYTHON"):
        return (sys.executable, "-I", "-S", str(RELAY), shared)
    path = Path(tempfile.mkdtemp(prefix="warm")) / "s"
    command = [sys.executable, "-c", "from tests.warm import serve; import sys; serve(sys.argv[1])", str(path)]
    search = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": search}
    )
    atexit.register(_end, server, os.getpid())
    assert server.stdout is not None
    assert server.stdout.readline() == b"warm\n"
    return (sys.executable, "-I", "-S", str(RELAY), str(path))


def _end(server: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:
        server.kill()
        server.communicate()


def serve(path: str) -> None:
    """Load all that a first document needs, then start a copy of this process for each request, until its own end."""
    import ragstone.blocking
    import ragstone.engine.corpus
    import ragstone.engine.documents
    import ragstone.engine.engine
    import ragstone.engine.sources
    import ragstone.ingest.jobs.sync
    import ragstone.ingest.pipeline
    import ragstone.ingest.prepare
    import ragstone.ingest.sources.files.source
    import ragstone.query.pipeline
    import ragstone.serve.cli.commands.ingest
    import ragstone.serve.cli.main
    import ragstone.serve.mcp.server
    import ragstone.settings.profiles
    import ragstone.stores.corpus.upkeep
    import ragstone.stores.ledger.index_feed
    import ragstone.stores.ledger.sqlite.ledger
    import ragstone.stores.lexical.bm25
    import ragstone.stores.lexical.sqlite
    import ragstone.stores.vectors.partitions
    import ragstone.stores.vectors.sqlite
    import ragstone.testing.fakes  # noqa: F401
    from ragstone.language.detector import language_of

    assert language_of("The harbour opens at six in the morning.") == "en"
    gc.freeze()  # a copy does not look through what it shares
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("warm", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                break
            connection.close()
    given, streams = _receive(connection)
    child = os.fork()
    if child:
        _attend(connection, child, streams)
    else:
        connection.close()
        _become(given, streams)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    size = array.array("i").itemsize
    message, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_LEN(3 * size))
    streams = array.array("i")
    for _, _, descriptors in ancillary:
        streams.frombytes(descriptors)
    content = b""
    while len(content) < int.from_bytes(message, "big"):
        content += connection.recv(65536)
    return json.loads(content), list(streams)


def _attend(connection: socket.socket, child: int, streams: list[int]) -> None:
    """Say the child's id, then how it ended; end it when nobody is left to hear that."""
    for descriptor in streams:
        os.close(descriptor)
    connection.sendall(child.to_bytes(4, "big"))
    ended = os.pidfd_open(child)
    readable, _, _ = select.select([ended, connection.fileno()], [], [])
    if ended not in readable:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended in readable:
        connection.sendall(status.to_bytes(4, "big", signed=True))
    os._exit(0)


def _open_output(descriptor: int, *, line_buffering: bool) -> io.TextIOWrapper:
    written = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
    return io.TextIOWrapper(written, "utf-8", line_buffering=line_buffering)


def _become(given: dict[str, Any], streams: list[int]) -> None:
    """Run what an interpreter with these arguments would, with these streams."""
    for place, descriptor in enumerate(streams):
        os.dup2(descriptor, place)
        os.close(descriptor)
    # New objects: those of the server remember whether its own streams were files.
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = _open_output(1, line_buffering=os.isatty(1))
    sys.stderr = _open_output(2, line_buffering=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(given["environment"])
    tempfile.tempdir = None
    os.chdir(str(given["folder"]))
    kind, what, *arguments = given["arguments"]
    sys.argv = [what, *arguments]
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            assert kind == "-c", kind
            sys.argv[0] = kind
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        leave(ended.code or 0)
    leave(0)
