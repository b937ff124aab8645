"""Parse files in child processes, so that a bad file costs a child and never the service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from select import POLLIN, POLLOUT, poll
from typing import IO

from ragstone.core.errors import ParseError, ParserLimit
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, ParseOptions, printable
from ragstone.ingest.parsers.sandbox import messages as wire

DOCUMENTS_PER_CHILD = 2000
START_SECONDS = 60.0
_CHUNK = 1 << 16
_CHILD = "ragstone.ingest.parsers.sandbox.child"


def start_isolated(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run `main` of a module, which finds the arguments behind the name of the program, on two pipes."""
    # It has no site packages of its own: the parent's import path comes behind the arguments.
    boot = f"import sys; sys.path[:] = sys.argv[{len(arguments) + 1}:]; from {module} import main; main()"
    return subprocess.Popen(  # noqa: S603  (our own interpreter, our own arguments)
        [
            *(sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", boot),
            *arguments,
            *(str(Path(entry).absolute()) for entry in sys.path if entry),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        cwd=Path("/"),
        close_fds=True,
        start_new_session=True,
        bufsize=0,
    )


def _environment() -> dict[str, str]:
    """Return an environment with nothing of the parent's but where programs are.

    One thread and one heap, or each core maps memory of its own; OCR sends no telemetry.
    """
    return {
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "PATH": os.environ.get("PATH", os.defpath),
    }


class ParserProcess:
    """Used by one thread at a time; only `kill` may be called by another."""

    def __init__(self, memory_mb: int) -> None:
        self._documents = 0
        self._memory = memory_mb * 1024 * 1024
        self._in_step = True
        self._killed = False
        self._process = start_isolated(_CHILD, str(memory_mb), str(os.getpid()))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        for stream in (self._stdin, self._stdout):
            os.set_blocking(stream.fileno(), False)
        self._mapped = self._mapped_at_start = self._wait_until_ready()

    def _wait_until_ready(self) -> int:
        """Wait until the child runs: on a busy machine that takes a while, which the first file must not pay for."""
        deadline = time.monotonic() + START_SECONDS
        try:
            return _read_mapped(wire.read_frame(lambda length: self._read(length, deadline), wire.MAX_HEAD))
        except (EOFError, TimeoutError, ValueError) as problem:
            self.end()
            raise ParseError(
                "the parser process did not start", hint=f"check that this works: {sys.executable} -c 'import {_CHILD}'"
            ) from problem

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_fit(self) -> bool:
        """Return whether it may take another file: alive, in step with us, and not grown or old."""
        return (
            self._in_step
            and not self._killed  # it may be alive for a while yet
            and self._process.poll() is None
            and self._documents < DOCUMENTS_PER_CHILD
            and (self._mapped - self._mapped_at_start) * 2 <= self._memory
        )

    def ask(self, head: bytes, content: bytes, deadline: float) -> Parsed:
        """Send a file and read what became of it."""
        self._in_step = False
        self._write(wire.frame(head) + len(content).to_bytes(8, "big"), deadline)
        self._write(content, deadline)

        def read(length: int) -> bytearray:
            return self._read(length, deadline)

        self._documents += 1
        try:
            parsed = wire.decode_reply(read, len(content))
        except ParseError:
            self._end_of_reply(read)
            raise
        self._end_of_reply(read)
        return parsed

    def _end_of_reply(self, read: wire.Read) -> None:
        self._mapped = _read_mapped(wire.read_frame(read, wire.MAX_HEAD))
        self._in_step = True

    def kill(self) -> None:
        """Stop it, by its own process id."""
        self._killed = True
        self._process.kill()

    def wait_for_exit(self) -> int:
        """Return its exit code, once it has closed its pipes."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout=START_SECONDS)
        self.kill()
        return self._process.wait()

    def end(self) -> None:
        """Stop it and close its pipes."""
        self.kill()
        self._process.wait()
        self._stdin.close()
        self._stdout.close()

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            self._wait(self._stdin, POLLOUT, deadline)
            try:
                view = view[os.write(self._stdin.fileno(), view[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise EOFError from None

    def _read(self, length: int, deadline: float) -> bytearray:
        data = bytearray()
        while len(data) < length:
            self._wait(self._stdout, POLLIN, deadline)
            received = os.read(self._stdout.fileno(), min(length - len(data), 1 << 20))
            if not received:
                raise EOFError
            data += received
        return data

    def _wait(self, stream: IO[bytes], event: int, deadline: float) -> None:
        waiter = poll()
        waiter.register(stream, event)
        if not waiter.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError


def _read_mapped(state: bytes | bytearray) -> int:
    return int(json.loads(state)["mapped"])


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """The most that one file may cost."""

    seconds: float = 120.0
    memory_mb: int = 1024
    pages: int = 5000
    file_mb: int = 100


class ParserPool:
    """Parses files in child processes with limits; `parse` calls queue over the workers."""

    def __init__(self, limits: ParserLimits | None = None, workers: int = 1) -> None:
        self.limits = limits or ParserLimits()
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="parser")
        self._lock = threading.Lock()
        self._children: set[ParserProcess] = set()
        self._idle: list[ParserProcess] = []
        self._closed = False

    @property
    def pids(self) -> frozenset[int]:
        """Return the process ids of the children that are there now."""
        with self._lock:
            return frozenset(child.pid for child in self._children)

    async def parse(self, content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
        """Parse one file; raises `ParseError`, and `ParserLimit` when it costs more than the limits allow."""
        name = printable(name)
        if len(content) > self.limits.file_mb * 1024 * 1024:
            raise ParserLimit(
                f"{name} is larger than {self.limits.file_mb} MB", hint="raise limits.file_mb, or split the file"
            )
        job = _ParseJob(content, name, replace(options, pages=self.limits.pages), self.limits)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, job)
        except asyncio.CancelledError:
            job.cancel()
            raise

    async def close(self) -> None:
        """End the children, also those at work; nothing can be parsed after this."""
        with self._lock:
            self._closed = True
            for child in self._children:
                child.kill()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        for child in self._idle:
            child.end()
        self._children.clear()
        self._idle.clear()

    def _run(self, job: _ParseJob) -> Parsed:
        child = self._take()
        try:
            return job.run(child)
        finally:
            self._give_back(child)

    def _take(self) -> ParserProcess:
        with self._lock:
            child = self._idle.pop() if self._idle else None
        if child is not None and not child.is_fit():
            self._give_back(child)
            child = None
        child = child or ParserProcess(self.limits.memory_mb)
        with self._lock:
            self._children.add(child)
            if self._closed:
                child.kill()
        return child

    def _give_back(self, child: ParserProcess) -> None:
        with self._lock:
            if child.is_fit():
                self._idle.append(child)
                return
            self._children.discard(child)
        child.end()


class _ParseJob:
    """One file on its way through one child."""

    def __init__(self, content: bytes, name: str, options: ParseOptions, limits: ParserLimits) -> None:
        self.content = content
        self.name = name
        self.options = options
        self.limits = limits
        self._child: ParserProcess | None = None
        self._cancelled = False
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Stop the child at work, so that the thread that waits for it is free."""
        with self._lock:
            self._cancelled = True
            if self._child is not None:
                self._child.kill()

    def run(self, child: ParserProcess) -> Parsed:
        with self._lock:
            self._child = child
            if self._cancelled:
                child.kill()
        head = {"name": self.name, "seconds": self.limits.seconds, "options": asdict(self.options)}
        deadline = time.monotonic() + self.limits.seconds
        try:
            return child.ask(json.dumps(head).encode(), self.content, deadline)
        except TimeoutError:
            raise ParserLimit(
                f"{self.name} took longer than {self.limits.seconds:g} s to parse",
                hint="raise limits.parse_seconds, or split the file",
            ) from None
        except EOFError:
            raise self._death(child.wait_for_exit()) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise ParseError(
                f"the parser gave a broken answer for {self.name}: {problem!s:.200}", hint="the file may be hostile"
            ) from problem
        finally:
            with self._lock:
                self._child = None

    def _death(self, returncode: int) -> ParseError:
        if returncode == -signal.SIGXCPU:
            return ParserLimit(
                f"{self.name} took more than {self.limits.seconds:g} s of processor time to parse",
                hint="raise limits.parse_seconds, or split the file",
            )
        if returncode == wire.OUT_OF_MEMORY:
            return ParserLimit(
                f"{self.name} needs more than {self.limits.memory_mb} MB to parse",
                hint="raise limits.parse_memory_mb, or split the file",
            )
        if returncode == -signal.SIGKILL:
            return ParserLimit(
                f"the parser was killed while it read {self.name}", hint="the machine may be out of memory"
            )
        ended = signal.Signals(-returncode).name if returncode < 0 else f"exit code {returncode}"
        return ParseError(
            f"{self.name} crashed the parser ({ended}): it is damaged, or needs more than {self.limits.memory_mb} MB",
            hint="open it and save it again, or raise limits.parse_memory_mb",
        )
