from __future__ import annotations

import asyncio
import io
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ragstone.core.errors import EmptyDocument, ParseError, ParserLimit, UnsupportedFormat
from ragstone.core.types import Attachment, Block, Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import ParseOptions
from ragstone.ingest.parsers.sandbox import child
from ragstone.ingest.parsers.sandbox import limits as sandbox
from ragstone.ingest.parsers.sandbox import messages as wire
from ragstone.ingest.parsers.sandbox import pool as pool_module
from ragstone.ingest.parsers.sandbox.pool import ParserLimits, ParserPool

SLOW = b"*a _b [c](d) " * 400_000
"""Markdown that takes far longer than any limit used here."""


@pytest.fixture
async def pool() -> AsyncIterator[ParserPool]:
    pool = ParserPool()
    yield pool
    await pool.close()


async def _a_child_at_work(pool: ParserPool) -> int:
    while not pool.pids:  # noqa: ASYNC110  (the pool has no event for it, and users no need of one)
        await asyncio.sleep(0)
    return next(iter(pool.pids))


async def test_the_answer_is_the_parsers_own(pool: ParserPool) -> None:
    content = "# Títle\n\nBody with \u200bhidden.\n\n- list".encode()
    assert await pool.parse(content, "a.md") == parse(content, "a.md")


async def test_a_child_that_was_told_to_end_takes_no_other_file(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is cancelled when its answer has just come ends a child that is alive a while longer."""
    await pool.parse(b"words", "a.txt")
    (idle,) = pool._idle
    with monkeypatch.context() as patched:
        patched.setattr(idle._process, "kill", lambda: None)  # the system is busy
        idle.kill()
    assert not idle.is_fit()
    assert (await pool.parse(b"other words", "b.txt")).text == "other words"
    assert idle.pid not in pool.pids


async def test_many_blocks_arrive_in_order(pool: ParserPool) -> None:
    content = b"\n\n".join(b"paragraph %d" % number for number in range(5001))
    parsed = await pool.parse(content, "a.txt")
    assert parsed.text == content.decode()
    assert len(parsed.blocks) == 5001


@pytest.mark.parametrize(
    ("content", "name", "error"),
    [
        (b"", "empty.txt", EmptyDocument),
        (b"\x00\x01\x02" * 99, "a.xyz", UnsupportedFormat),
        (b"words", "a.pdf", ParseError),
    ],
)
async def test_errors_come_back_typed(pool: ParserPool, content: bytes, name: str, error: type[ParseError]) -> None:
    with pytest.raises(error) as in_child:
        await pool.parse(content, name)
    with pytest.raises(error) as here:
        parse(content, name)
    assert type(in_child.value) is error
    assert (str(in_child.value), in_child.value.hint) == (str(here.value), here.value.hint)


async def test_one_child_serves_many_files(pool: ParserPool) -> None:
    await pool.parse(b"one", "a.txt")
    pids = pool.pids
    with pytest.raises(EmptyDocument):
        await pool.parse(b"", "b.txt")
    await pool.parse(b"two", "c.txt")
    assert pool.pids == pids
    assert len(pids) == 1


async def test_files_queue_over_the_workers() -> None:
    pool = ParserPool(workers=2)
    names = [f"{number}.txt" for number in range(12)]
    parsed = await asyncio.gather(*(pool.parse(name.encode(), name) for name in names))
    assert [document.text for document in parsed] == names
    assert len(pool.pids) == 2
    await pool.close()
    assert pool.pids == frozenset()


async def test_a_file_that_is_too_large_never_reaches_a_child() -> None:
    pool = ParserPool(ParserLimits(file_mb=1))
    with pytest.raises(ParserLimit, match=r"big\.txt is larger than 1 MB"):
        await pool.parse(bytes(1024 * 1024 + 1), "big.txt")
    assert pool.pids == frozenset()
    await pool.close()


async def test_too_slow_is_a_limit_and_the_next_file_gets_a_new_child() -> None:
    pool = ParserPool(ParserLimits(seconds=0.2))
    await pool.parse(b"fast", "a.txt")
    before = pool.pids
    with pytest.raises(ParserLimit, match=r"slow\.md took longer than 0\.2 s") as caught:
        await pool.parse(SLOW, "slow.md")
    assert "limits.parse_seconds" in caught.value.hint
    assert pool.pids == frozenset()
    assert (await pool.parse(b"fast", "a.txt")).text == "fast"
    assert pool.pids.isdisjoint(before)
    await pool.close()


async def test_too_much_memory_is_a_limit_and_the_next_file_is_parsed() -> None:
    pool = ParserPool(ParserLimits(memory_mb=128))
    with pytest.raises(ParserLimit, match=r"big\.txt"):
        await pool.parse(b"words " * 10_000_000, "big.txt")
    assert (await pool.parse(b"small", "a.txt")).text == "small"
    await pool.close()


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (signal.SIGKILL, ParserLimit, "the parser was killed while it read slow.md"),
        (signal.SIGXCPU, ParserLimit, "slow.md took more than 120 s of processor time"),
        (signal.SIGSEGV, ParseError, "slow.md crashed the parser (SIGSEGV)"),
    ],
)
async def test_a_child_that_dies_costs_one_file(
    pool: ParserPool, number: signal.Signals, error: type[ParseError], message: str
) -> None:
    task = asyncio.create_task(pool.parse(SLOW, "slow.md"))
    os.kill(await _a_child_at_work(pool), number)
    with pytest.raises(error) as caught:
        await task
    assert type(caught.value) is error
    assert message in str(caught.value)
    assert (await pool.parse(b"next", "a.txt")).text == "next"


async def test_a_child_that_died_between_files_is_replaced(pool: ParserPool) -> None:
    await pool.parse(b"one", "a.txt")
    (pid,) = pool.pids
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [])
    os.close(ended)
    assert (await pool.parse(b"two", "b.txt")).text == "two"
    assert pid not in pool.pids


async def test_cancelling_frees_the_worker(pool: ParserPool) -> None:
    task = asyncio.create_task(pool.parse(SLOW, "slow.md"))
    pid = await _a_child_at_work(pool)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await pool.parse(b"next", "a.txt")).text == "next"
    assert pid not in pool.pids


async def test_closing_ends_children_at_work() -> None:
    pool = ParserPool()
    task = asyncio.create_task(pool.parse(SLOW, "slow.md"))
    await _a_child_at_work(pool)
    await pool.close()
    with pytest.raises(ParserLimit):
        await task
    assert pool.pids == frozenset()


async def test_a_child_is_replaced_after_many_files(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "DOCUMENTS_PER_CHILD", 2)
    seen = []
    for number in range(3):
        await pool.parse(b"text", f"{number}.txt")
        seen.append(pool.pids)
    assert len(seen[0]) == len(seen[2]) == 1
    assert seen[1] == frozenset()
    assert seen[0] != seen[2]


async def test_the_loop_goes_on_while_a_file_is_parsed(pool: ParserPool) -> None:
    task = asyncio.create_task(pool.parse(SLOW, "slow.md"))
    await _a_child_at_work(pool)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()


async def test_the_child_has_nothing_it_does_not_need(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_SECRET", "hunter2")
    await pool.parse(b"text", "a.txt")
    (pid,) = pool.pids
    state = Path("/proc") / str(pid)
    environment = dict(entry.split("=", 1) for entry in (state / "environ").read_text().split("\0") if entry)
    assert environment == {
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "PATH": os.environ["PATH"],
    }
    assert (state / "cwd").readlink() == Path("/")
    # Requests, replies, and the null device twice.
    assert len(list((state / "fd").iterdir())) == 4
    limits = {line[:25].strip(): line[25:].split()[:2] for line in (state / "limits").read_text().splitlines()}
    assert limits["Max address space"] == [str(1024 * 1024 * 1024)] * 2
    assert limits["Max file size"] == ["0", "0"]
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max open files"] == [str(sandbox.OPEN_FILES)] * 2
    assert 120 <= int(limits["Max cpu time"][0]) <= 130


def test_no_child_outlives_a_parent_that_is_killed() -> None:
    script = (
        "import asyncio, os, signal\n"
        "from ragstone.ingest.parsers.sandbox.pool import ParserPool\n"
        "async def main():\n"
        "    pool = ParserPool()\n"
        "    await pool.parse(b'text', 'a.txt')\n"
        "    print(*pool.pids, flush=True)\n"
        "    input()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    ended = os.pidfd_open(int(parent.stdout.readline()))
    parent.communicate(b"\n")
    assert parent.returncode == -signal.SIGKILL
    assert select.select([ended], [], [], 30)[0] == [ended]
    os.close(ended)


def _ask(*requests: tuple[bytes, str]) -> io.BytesIO:
    asked = io.BytesIO()
    for content, name in requests:
        head = {"name": name, "seconds": 5, "options": {"pages": 10}}
        asked.write(wire.frame(json.dumps(head).encode()) + wire.frame(content))
    asked.seek(0)
    answered = io.BytesIO()
    child.serve(asked, answered)
    answered.seek(0)
    return answered


def test_the_childs_side_of_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "allow_cpu", lambda seconds: None)
    answers = _ask((b"one\n\ntwo", "a.txt"), (b"", "b.txt"))
    assert wire.decode_reply(answers.read, 8) == parse(b"one\n\ntwo", "a.txt")
    assert json.loads(wire.read_frame(answers.read, 100))["mapped"] > 0
    with pytest.raises(EmptyDocument, match=r"b\.txt is empty"):
        wire.decode_reply(answers.read, 0)


def test_more_text_than_the_file_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "allow_cpu", lambda seconds: None)
    huge = Parsed("x" * (9 * 1024 * 1024), (Block("paragraph", 0, 9 * 1024 * 1024),))
    monkeypatch.setattr(child, "parse", lambda content, name, options: huge)
    with pytest.raises(ParserLimit, match=r"a\.pdf gives 9,437,184 bytes of text from 10"):
        wire.decode_reply(_ask((b"0123456789", "a.pdf")).read, 10)


@pytest.mark.parametrize("raised", [MemoryError()])
def test_running_out_of_memory_is_said(monkeypatch: pytest.MonkeyPatch, raised: BaseException) -> None:
    def fail(*_: object, **__: object) -> Parsed:
        raise raised

    monkeypatch.setattr(sandbox, "allow_cpu", lambda seconds: None)
    monkeypatch.setattr(child, "parse", fail)
    with pytest.raises(ParserLimit, match=r"a\.pdf needs more memory"):
        wire.decode_reply(_ask((b"x", "a.pdf")).read, 1)


def reply(**fields: object) -> bytes:
    usual: dict[str, object] = {
        "title": "",
        "media_type": "",
        "metadata": {},
        "warnings": [],
        "attachments": [],
        "next_page": None,
    }
    return wire.frame(json.dumps({"blocks": 1, **usual, **fields}).encode())


PARAGRAPH = [wire.frame(b"text"), wire.frame(b'[["paragraph", 0, 4, 0, "", null]]')]


@pytest.mark.parametrize(
    "frames",
    [
        [b"\xff" * 8],
        [reply(blocks=-1), wire.frame(b"")],
        [reply(blocks=0), wire.frame(b"text")],
        [reply(), (1 << 40).to_bytes(8, "big")],
        [reply(), wire.frame(b"text"), wire.frame(b'[["paragraph", 0, 99, 0, "", null]]')],
        [reply(attachments=[["a", "b"]] * 1001), *PARAGRAPH],
        [reply(attachments=[["a", "b"]]), *PARAGRAPH, wire.frame(bytes(65 * 1024))],
        [reply(attachments=[["a", "b"]] * 2), *PARAGRAPH, *[wire.frame(bytes(33 * 1024))] * 2],
        [reply(next_page="soon"), *PARAGRAPH],
    ],
)
def test_the_parent_does_not_trust_the_child(frames: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"frame of|blocks|outside|no block|attachments|invalid literal"):
        wire.decode_reply(io.BytesIO(b"".join(frames)).read, 4)


def test_attachments_and_the_next_page_go_over_the_wire() -> None:
    attachments = (Attachment("a.bin", "application/octet-stream", bytes(range(256))), Attachment("b", "", b""))
    sent = Parsed("text", (Block("paragraph", 0, 4),), attachments=attachments, next_page=7)
    frames = b"".join(wire.encode_parsed(sent, 256, "a.eml"))
    assert wire.decode_reply(io.BytesIO(frames).read, 256) == sent


@pytest.mark.parametrize(("count", "size"), [(1001, 0), (1, 66 * 1024)])
def test_more_attachments_than_the_file_can_hold_are_refused(count: int, size: int) -> None:
    attachments = (Attachment("a", "", bytes(size)),) * count
    sent = Parsed("text", (Block("paragraph", 0, 4),), attachments=attachments)
    with pytest.raises(ParserLimit, match=rf"a\.eml gives {count:,} attachments of {size:,} bytes"):
        list(wire.encode_parsed(sent, 1024, "a.eml"))


async def test_the_options_reach_the_child_with_the_pools_own_page_limit(make_pdf: Callable[..., bytes]) -> None:
    def draw(page: Any) -> None:
        for number in range(1, 5):
            page.drawString(72, 700, f"Sentence {number}.")
            page.showPage()

    content = make_pdf(draw)
    pool = ParserPool(ParserLimits(pages=4))
    try:
        part = await pool.parse(content, "a.pdf", ParseOptions(first_page=2, window=2, pages=1))
    finally:
        await pool.close()
    assert [block.page for block in part.blocks] == [2, 3]
    assert part.next_page == 4
    small = ParserPool(ParserLimits(pages=3))
    with pytest.raises(ParserLimit, match="4 pages; the limit is 3"):
        await small.parse(content, "a.pdf", ParseOptions(pages=4))
    await small.close()
