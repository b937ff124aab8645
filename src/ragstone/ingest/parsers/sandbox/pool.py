"""Children that parse, and the queue in front of them: a bad file costs a child, never the service."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

from ragstone.core.errors import ParseError, ParserLimit
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.sandbox import messages as wire
from ragstone.ingest.parsers.sandbox.process import ParserProcess
from ragstone.ingest.parsers.text.cleaning import printable


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
        """The process ids of the children that are there now."""
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
