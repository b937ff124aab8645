"""Reads that hang keep their threads: from the last one on nobody waits until one comes back; streams without async."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest

from ragstone.core.background import LoopThread, ReaderPool, wait_for_each
from ragstone.core.errors import StoreBusy, StoreError

THREADS = 2


class Hang:
    """Work that begins, and ends when it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Event()

    def __call__(self) -> str:
        self.begun.release()
        self.let_go.wait()
        return "late"


@pytest.fixture
async def readers() -> AsyncIterator[ReaderPool]:
    made = ReaderPool(THREADS, "acme.db")
    yield made
    await asyncio.to_thread(made.close)


async def left_alone(readers: ReaderPool, hang: Hang, count: int) -> None:
    """So many reads begin, and those who asked for them give up."""
    tasks = [asyncio.create_task(readers.run(hang)) for _ in range(count)]
    for _ in tasks:
        await asyncio.to_thread(hang.begun.acquire)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until_read(readers: ReaderPool) -> str:
    while True:
        with suppress(StoreBusy):
            return await readers.run(lambda: "again")


async def test_who_finds_every_thread_hanging_is_refused_at_once(readers: ReaderPool) -> None:
    hang = Hang()
    try:
        await left_alone(readers, hang, THREADS)
        assert readers.left_behind == THREADS
        with pytest.raises(StoreBusy, match=r"^2 reads of acme\.db have not come back$"):
            await readers.run(str)
    finally:
        hang.let_go.set()
    assert await until_read(readers) == "again"


async def test_one_free_thread_serves_everybody(readers: ReaderPool) -> None:
    hang = Hang()
    try:
        await left_alone(readers, hang, THREADS - 1)
        assert await asyncio.gather(*(readers.run(lambda: "read") for _ in range(5))) == ["read"] * 5
    finally:
        hang.let_go.set()


async def test_what_had_not_begun_leaves_nothing_behind(readers: ReaderPool) -> None:
    hang = Hang()
    asked: list[str] = []
    waiting = [asyncio.create_task(readers.run(hang)) for _ in range(THREADS)]
    for _ in waiting:
        await asyncio.to_thread(hang.begun.acquire)
    late = asyncio.create_task(readers.run(lambda: asked.append("begun")))
    await asyncio.sleep(0)
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    assert readers.left_behind == 0
    hang.let_go.set()
    assert await asyncio.gather(*waiting) == ["late"] * THREADS
    assert asked == []


async def test_what_fails_fails_for_who_asked(readers: ReaderPool) -> None:
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await readers.run(fail)
    assert readers.left_behind == 0


async def test_what_is_read_ahead_and_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("no such table")

    readers = ReaderPool(THREADS, "acme.db")
    readers.run_later(fail)
    readers.run_later(str)
    await asyncio.to_thread(readers.close)
    assert caplog.messages == ["cannot read ahead in acme.db: no such table"]


async def test_once_closed_nothing_is_read() -> None:
    readers = ReaderPool(THREADS, "acme.db")
    readers.close()
    read: list[str] = []
    readers.run_later(lambda: read.append("ahead"))
    with pytest.raises(StoreError, match=r"^acme\.db is closed$"):
        await readers.run(lambda: read.append("now"))
    assert read == []


def test_what_was_cancelled_tidies_up_before_its_loop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, stopping = threading.Event(), threading.Event()
    ended: list[str] = []

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("the work")

    thread = LoopThread("work")
    future = asyncio.run_coroutine_threadsafe(work(), thread.loop)
    assert begun.wait(240)
    schedule = thread.loop.call_soon_threadsafe
    schedule(stopping.wait, 240)
    future.cancel()

    def schedule_and_go_on(*arguments: Any, **options: Any) -> asyncio.Handle:
        handle = schedule(*arguments, **options)
        stopping.set()
        return handle

    monkeypatch.setattr(thread.loop, "call_soon_threadsafe", schedule_and_go_on)
    thread.stop()
    assert ended == ["the work"]


def test_an_interrupt_while_a_stream_is_waited_for_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = threading.Event()
    ended: list[str] = []
    submit = asyncio.run_coroutine_threadsafe

    async def tell() -> AsyncGenerator[str]:
        try:
            yield "first"
            waiting.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("the stream")

    def press_ctrl_c(work: Coroutine[Any, Any, str], loop: asyncio.AbstractEventLoop) -> Future[str]:
        monkeypatch.undo()
        future = submit(work, loop)

        def result() -> str:
            assert waiting.wait(240)
            raise KeyboardInterrupt

        monkeypatch.setattr(future, "result", result)
        return future

    thread = LoopThread("stream")
    stream = wait_for_each(tell(), thread.run)
    assert next(stream) == "first"
    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    thread.stop()
    assert ended == ["the stream"]
