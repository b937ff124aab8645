from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragstone.core.activity import Feedback, GoldenQuery
from ragstone.core.errors import InputError
from ragstone.core.types import Hit, SearchResult
from ragstone.stores import activity_rows
from ragstone.stores import batch_writer as batched
from ragstone.stores.activity import ActivityFiles
from ragstone.stores.activity_log import SearchLog

START = datetime(2026, 1, 31, tzinfo=UTC)


async def _still(tenant: str, tenant_id: str) -> bool:
    return tenant != "gone"


def _result(query: str, hits: int = 1) -> SearchResult:
    found = tuple(
        Hit(f"c{n}", f"d{n}", "", "", "", None, "granite rock", 0.9 - n / 100, {"dense": 0.5}, {}, 0, 1)
        for n in range(hits)
    )
    return SearchResult(query, query, "fast", found, (), (), 12.5)


@pytest.fixture
def files(tmp_path: Path) -> ActivityFiles:
    return ActivityFiles(tmp_path / "activity")


@pytest.fixture
def log(files: ActivityFiles) -> SearchLog:
    return SearchLog(files, 30, _still, lambda: START)


async def _logged(files: ActivityFiles, tenant_id: str = "t1") -> list[str]:
    searches = await files.run(tenant_id, lambda db: activity_rows.read_searches(db, "kb"), [])
    return [one.query for one in searches]


async def test_notes_are_written_together_a_moment_later(
    files: ActivityFiles, log: SearchLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched, "PAUSE_SECONDS", 0.0)
    writes: list[str] = []
    write = files.write

    async def counted(tenant_id: str, work: Callable[..., object]) -> object:
        writes.append(tenant_id)
        return await write(tenant_id, work)

    monkeypatch.setattr(files, "write", counted)
    for n in range(3):
        log.note("acme", "t1", "kb", _result(f"q{n}"))
    assert writes == []
    await asyncio.sleep(0)  # the timer's turn
    await log.flush()
    assert writes == ["t1"]
    assert await _logged(files) == ["q2", "q1", "q0"]


async def test_only_the_first_passages_are_remembered(files: ActivityFiles, log: SearchLog) -> None:
    log.note("acme", "t1", "kb", _result("granite mountains", hits=25))
    await log.close()
    [one] = await files.run("t1", lambda db: activity_rows.read_searches(db, "kb"), [])
    assert (one.num_results, len(one.shown), one.top_score, one.similarity) == (25, 10, 0.9, 0.5)
    assert (one.coverage, one.missing) == (0.5, ("mountains",))


async def test_nothing_is_kept_of_those_who_are_gone(
    files: ActivityFiles, log: SearchLog, tmp_path: Path
) -> None:
    log.note("gone", "t9", "kb", _result("q"))
    await log.close()
    assert not (tmp_path / "activity").exists()


async def test_too_many_at_once_are_dropped_and_counted(
    files: ActivityFiles, log: SearchLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(batched, "MOST_WAITING", 2)
    for n in range(5):
        log.note("acme", "t1", "kb", _result(f"q{n}"))
    await log.close()
    assert (log.dropped, await _logged(files)) == (3, ["q1", "q0"])
    assert "3 searches were not logged" in caplog.text


async def test_old_searches_are_forgotten(files: ActivityFiles) -> None:
    early = SearchLog(files, 30, _still, lambda: START - timedelta(days=31))
    early.note("acme", "t1", "kb", _result("old"))
    await early.close()
    assert await _logged(files) == ["old"]
    late = SearchLog(files, 30, _still, lambda: START)
    late.note("acme", "t1", "kb", _result("new"))
    await late.close()
    assert await _logged(files) == ["new"]


async def test_only_the_owner_may_read_the_file(files: ActivityFiles, log: SearchLog, tmp_path: Path) -> None:
    log.note("acme", "t1", "kb", _result("q"))
    await log.close()
    assert stat.S_IMODE((tmp_path / "activity" / "t1.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("tenant_id", ["../t1", "a/b", "T1", ""])
async def test_ids_that_lead_elsewhere_are_refused(files: ActivityFiles, tenant_id: str) -> None:
    with pytest.raises(InputError):
        await files.write(tenant_id, lambda _: None)


async def test_looking_makes_no_file(files: ActivityFiles, tmp_path: Path) -> None:
    assert await files.run("t1", activity_rows.count_all, 0) == 0
    assert await files.run("", activity_rows.count_all, 0) == 0
    assert not (tmp_path / "activity").exists()


async def test_work_that_fails_leaves_nothing(files: ActivityFiles) -> None:
    vote = Feedback(START, "kb", "q", "c1", "d1", "up")

    def half(db: object) -> None:
        activity_rows.add_votes(db, [vote])  # type: ignore[arg-type]
        raise InputError("no")

    with pytest.raises(InputError):
        await files.write("t1", half)
    assert await files.run("t1", activity_rows.count_all, -1) == 0


async def test_two_writers_take_turns(files: ActivityFiles, tmp_path: Path) -> None:
    others = ActivityFiles(tmp_path / "activity")
    votes = [Feedback(START, "kb", f"q{n}", "c1", "d1", "up") for n in range(20)]
    await asyncio.gather(
        *(
            place.write("t1", lambda db, one=one: activity_rows.add_votes(db, [one]))
            for place, one in zip([files, others] * 10, votes, strict=True)
        )
    )
    assert await files.run("t1", activity_rows.count_all, 0) == 20


async def test_what_there_is_of_a_document_and_of_a_kb(files: ActivityFiles, log: SearchLog) -> None:
    log.note("acme", "t1", "kb", _result("q", hits=2))
    log.note("acme", "t1", "other", _result("q"))
    await log.flush()
    await files.write(
        "t1", lambda db: activity_rows.add_votes(db, [Feedback(START, "kb", "q", "c0", "d0", "up")])
    )
    kept = GoldenQuery("kb", "which", ("d0", "d1"), "manual")
    assert await files.write("t1", lambda db: activity_rows.add_golden(db, [kept, kept])) == 2
    assert await files.run("t1", lambda db: activity_rows.count_documents(db, ["d0"]), 0) == 4
    assert await files.run("t1", lambda db: activity_rows.count_kb(db, "kb"), 0) == 4
    await files.run("t1", lambda db: activity_rows.forget_documents(db, ["d0"]), None)
    assert await files.run("t1", lambda db: activity_rows.count_documents(db, ["d0"]), 0) == 0
    [golden] = await files.run("t1", lambda db: activity_rows.read_golden(db, "kb"), [])
    assert golden.document_ids == ("d1",)
    await files.run("t1", lambda db: activity_rows.forget_kb(db, "kb"), None)
    assert await files.run("t1", activity_rows.count_all, 0) == 1
    await files.remove("t1")
    assert await files.run("t1", activity_rows.count_all, 0) == 0


async def test_who_gives_up_waiting_takes_nobody_along(
    files: ActivityFiles, log: SearchLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, write = asyncio.Event(), files.write

    async def slow(tenant_id: str, work: Callable[..., object]) -> object:
        await go_on.wait()
        return await write(tenant_id, work)

    monkeypatch.setattr(files, "write", slow)
    log.note("acme", "t1", "kb", _result("q"))
    first, second = asyncio.create_task(log.flush()), asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go_on.set()
    await second
    await log.flush()
    assert await _logged(files) == ["q"]


async def test_only_the_newest_are_kept(
    files: ActivityFiles, log: SearchLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_rows, "MOST_SEARCHES", 2)
    monkeypatch.setattr(activity_rows, "MOST_VOTES", 2)
    for n in range(4):
        log.note("acme", "t1", "kb", _result(f"q{n}"))
    await log.close()
    assert await _logged(files) == ["q3", "q2"]
    votes = [Feedback(START + timedelta(n), "kb", f"q{n}", "c1", "d1", "up") for n in range(4)]
    await files.write("t1", lambda db: activity_rows.add_votes(db, votes))
    kept = await files.run("t1", lambda db: activity_rows.read_votes(db, "kb"), [])
    assert [one.query for one in kept] == ["q3", "q2"]
