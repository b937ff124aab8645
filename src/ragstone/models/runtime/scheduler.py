"""Batches rows of all calls for the model by length."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ragstone.core.errors import ModelError

BATCH_TOKENS = 1024
"""Beyond this a batch no longer fits the processor's own cache: twice as many take 2.1 times as long."""

SMALLEST_SHARE = 128


def budget_for(lengths: Sequence[int], workers: int) -> int:
    """Return the most tokens of a batch that keep all workers busy to the end."""
    workers = max(workers, 1)
    total = sum(lengths)
    rounds = max(1, -(-total // (workers * BATCH_TOKENS)))
    return min(BATCH_TOKENS, max(-(-total // (workers * rounds)), SMALLEST_SHARE))


Row = TypeVar("Row")
Output = TypeVar("Output")


@dataclass(eq=False, slots=True)
class _Call(Generic[Output]):
    """A caller that waits for the outputs of some rows."""

    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[list[Output]]
    rows: int
    left: int
    """Rows that wait."""
    outputs: dict[int, Output] = field(default_factory=dict)

    def end(self, error: BaseException | None = None) -> None:
        """End the call, from any thread: all outputs are there, or there will be none."""
        with suppress(RuntimeError):  # its loop is closed: the caller is gone
            self.loop.call_soon_threadsafe(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        if self.done.done():
            return
        if error:
            self.done.set_exception(error)
        else:
            self.done.set_result([self.outputs[position] for position in range(self.rows)])


@dataclass(eq=False, slots=True)
class _Entry(Generic[Row, Output]):
    """One row that waits."""

    call: _Call[Output]
    position: int
    row: Row
    length: int


class BatchScheduler(Generic[Row, Output]):
    """Threads that work off rows in batches, each filled up with like rows of any call.

    Every other batch is for the call that came first, the rest for the one with the fewest rows left: so large
    calls end one after another instead of all at last, and a small one does not wait for them.
    """

    def __init__(self, work: Callable[[Sequence[Row]], Sequence[Output]], *, workers: int, batch_size: int) -> None:
        self._work = work
        self._workers = workers
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._by_length: list[_Entry[Row, Output]] = []
        self._calls: list[_Call[Output]] = []
        self._turn = 0
        self._budget = 0
        self._at_work = 0
        # One more than the model runs at once: it makes the next batch ready.
        self._most = workers + 1
        self._threads = ThreadPoolExecutor(self._most, thread_name_prefix="ragstone-model")

    async def run(self, rows: Sequence[Row], lengths: Sequence[int]) -> list[Output]:
        """Return one output for each row, in order."""
        if not rows:
            return []
        loop = asyncio.get_running_loop()
        call: _Call[Output] = _Call(loop, loop.create_future(), rows=len(rows), left=len(rows))
        self._add(call, [_Entry(call, *entry) for entry in zip(range(len(rows)), rows, lengths, strict=True)])
        try:
            return await call.done
        finally:
            self._leave(call)

    def close(self) -> None:
        """Finish the batches at work and take no more."""
        with self._lock:
            left, self._calls = self._calls, []
            self._by_length.clear()
        for call in left:
            call.end(ModelError("the model was closed"))
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _add(self, call: _Call[Output], entries: Sequence[_Entry[Row, Output]]) -> None:
        with self._lock:
            self._by_length = sorted([*self._by_length, *entries], key=_length)
            self._calls.append(call)
            self._budget = budget_for([entry.length for entry in self._by_length], self._workers)
            starting = min(self._most - self._at_work, len(entries))
            self._at_work += starting
        for _ in range(starting):
            self._threads.submit(self._work_off)

    def _leave(self, call: _Call[Output]) -> None:
        """Drop the rows of a call that has ended."""
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
                self._by_length = [entry for entry in self._by_length if entry.call is not call]

    def _work_off(self) -> None:
        while batch := self._take():
            try:
                outputs = self._work([entry.row for entry in batch])
            except BaseException as error:
                for call in {id(entry.call): entry.call for entry in batch}.values():
                    call.end(error)
                continue
            self._deliver(batch, outputs)

    def _take(self) -> list[_Entry[Row, Output]]:
        """Take the longest row of the call whose turn it is, those as long, and the next shorter ones of all."""
        with self._lock:
            if not self._calls:
                self._at_work -= 1
                return []
            self._turn += 1
            call = self._calls[0] if self._turn % 2 else min(self._calls, key=lambda call: call.left)
            own = _last_of(call, self._by_length)
            length = self._by_length[own].length
            room = min(self._batch_size, max(1, self._budget // max(1, length)))
            end = min(own + room, bisect_right(self._by_length, length, key=_length))
            start = max(0, end - room)
            batch = self._by_length[start:end]
            del self._by_length[start:end]
            for entry in batch:
                entry.call.left -= 1
            self._calls = [call for call in self._calls if call.left]
            return batch

    def _deliver(self, batch: Sequence[_Entry[Row, Output]], outputs: Sequence[Output]) -> None:
        with self._lock:
            complete = []
            for entry, output in zip(batch, outputs, strict=True):
                entry.call.outputs[entry.position] = output
                if len(entry.call.outputs) == entry.call.rows:
                    complete.append(entry.call)
        for call in complete:
            call.end()


def _length(entry: _Entry[Row, Output]) -> int:
    return entry.length


def _last_of(call: _Call[Output], by_length: Sequence[_Entry[Row, Output]]) -> int:
    return next(n for n in reversed(range(len(by_length))) if by_length[n].call is call)
