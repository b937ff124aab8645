"""The process that meets the files: one request after another until its input ends."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import BinaryIO

from ragstone.core.errors import ParserLimit, RagstoneError
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import ParseOptions
from ragstone.ingest.parsers.sandbox import limits as sandbox
from ragstone.ingest.parsers.sandbox import messages as wire

_MAX_REQUEST = 1 << 40


def main() -> None:
    """Answer the pool on the standard streams; arguments are the memory limit and the parent's process id."""
    memory_mb, parent = (int(argument) for argument in sys.argv[1:3])
    sandbox.confine(memory_mb, parent)
    # `open_archive` refuses DTDs and entities; to look for them again, openpyxl would read XML in Python.
    os.environ["OPENPYXL_DEFUSEDXML"] = "False"
    # Nothing a library prints may get between the frames.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    replies.write(_state())
    replies.flush()
    try:
        serve(os.fdopen(0, "rb"), replies)
    except MemoryError:
        os._exit(wire.OUT_OF_MEMORY)


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Parse what is asked for until the requests end."""

    def read(length: int) -> bytes:
        data = requests.read(length)
        if len(data) < length:
            raise EOFError
        return data

    while True:
        try:
            head = json.loads(wire.read_frame(read, wire.MAX_HEAD))
            content = wire.read_frame(read, _MAX_REQUEST)
        except EOFError:
            return
        sandbox.allow_cpu(head["seconds"])
        replies.write(_reply(bytes(content), head["name"], ParseOptions(**head["options"])))
        del content
        replies.write(_state())
        replies.flush()


def _state() -> bytes:
    return wire.frame(json.dumps({"mapped": sandbox.address_space()}).encode())


def _reply(content: bytes, name: str, options: ParseOptions) -> bytes:
    try:
        parsed = parse(content, name, options)
        frames = io.BytesIO()
        for part in wire.encode_parsed(parsed, len(content), name):
            frames.write(part)
        return frames.getvalue()
    except RagstoneError as error:
        return wire.encode_error(error)
    except MemoryError:
        return wire.encode_error(
            ParserLimit(
                f"{name} needs more memory than the parser may use",
                hint="raise limits.parse_memory_mb, or split the file",
            )
        )
