"""The engine without async: in scripts, in a notebook's running loop, and when things go wrong."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from ragstone import Item, Ragstone, Settings
from ragstone.blocking import (
    BlockingCollections,
    BlockingConversations,
    BlockingFeedback,
    BlockingJobs,
    BlockingSources,
)
from ragstone.core.errors import InputError, RagstoneError, SettingsError
from ragstone.core.model_types import Embeddings
from ragstone.core.registry import UnknownAdapter
from ragstone.core.types import Failure, Role
from ragstone.engine.collections import Collections
from ragstone.engine.conversations import Conversations
from ragstone.engine.feedback import Feedback
from ragstone.engine.jobs import Jobs
from ragstone.engine.sources import Sources
from ragstone.ingest.work import Progress
from ragstone.testing.fakes import FakeEmbedder

LETTER = Item("letters", "1", "letters/1", "The ferry leaves at nine.", title="Ferry")


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = threading.enumerate()
    yield
    assert [one.name for one in threading.enumerate() if one.name == "ragstone" and one not in before] == []


def test_every_method_answers(fake_model: FakeEmbedder, data_dir: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text("The pier has nine lamps.", encoding="utf-8")
    with Ragstone(data_dir=data_dir) as stone:
        stone.warm()
        assert stone.ingest_items([LETTER, Failure("x", "too_large", "too large")]).added == 1
        assert stone.ingest(page).added == 1
        letter, other = sorted(stone.documents(), key=lambda document: document.source, reverse=True)
        assert (letter.title, other.title) == ("Ferry", "page.txt")
        assert stone.documents(limit=1, after=min(letter.id, other.id))[0].id == max(letter.id, other.id)
        assert stone.search("ferry", k=1).hits[0].document_id == letter.id
        assert stone.ask("When does the ferry leave at nine?").question == "When does the ferry leave at nine?"
        assert stone.explain("ferry", letter.id).found
        assert stone.document(letter.id) == letter
        assert stone.text(letter.id) == "Ferry\n\nThe ferry leaves at nine."
        assert stone.chunks(letter.id)[-1].chunk.text.endswith("The ferry leaves at nine.")
        assert stone.stats().documents == 2
        assert [kb.name for kb in stone.kbs()] == ["default"]
        assert stone.delete(letter.id)
        assert stone.delete_kb("default") == 1
    assert fake_model.closed


def test_a_new_one_can_work_at_once(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        stone.work()
        assert stone.jobs.list() == []


def test_half_a_character_is_refused_wherever_a_name_or_an_id_goes(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        stone.ingest_items([LETTER])
        answer = stone.ask("When does the ferry leave?")
        receipt = json.dumps(stone.receipt(answer)).replace(stone.documents()[0].id, "doc\\ud800")
        for work in (
            lambda: stone.text("doc\ud800"),
            lambda: stone.delete("doc\ud800"),
            lambda: stone.workspace("a\ud800").search("ferry"),
            lambda: stone.search("ferry", kb="a\ud800"),
            lambda: stone.status("doc\ud800"),
            lambda: stone.check_receipt(json.loads(receipt)),
        ):
            with pytest.raises(InputError, match="half of a surrogate pair"):
                work()


def test_an_empty_path_is_not_the_working_folder(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir) as stone, pytest.raises(InputError, match="a path is empty"):
        stone.ingest("")


def test_what_is_taken_in_now_and_worked_on_later(fake_model: FakeEmbedder, data_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "wiki"
    folder.mkdir()
    (folder / "pier.txt").write_text("The pier has nine lamps.", encoding="utf-8")
    with Ragstone(data_dir=data_dir) as stone:
        uploaded = stone.upload(b"The ferry leaves at nine.", "ferry.txt")
        assert uploaded.job is not None
        assert stone.jobs.cancel(uploaded.job.id)
        assert stone.jobs.retry(uploaded.job.id)
        assert stone.jobs.get(uploaded.job.id).state == "pending"
        made = stone.sources.add("files", "wiki", {"path": str(folder)})
        assert stone.sources.list() == [made]
        stone.sources.pause("wiki")
        assert stone.sources.get("wiki").paused
        assert stone.sources.sync("wiki").kind == "sync"
        stone.work()
        assert stone.status(uploaded.document_id).status == "completed"
        assert {job.state for job in stone.jobs.list()} == {"completed"}
        assert stone.stats().documents == 2
        notices = stone.jobs.notices()
        assert {notice.uri for notice in notices} == {"ferry.txt", "source:wiki"}
        stone.jobs.mark_read([notice.id for notice in notices])
        assert stone.jobs.notices(unread=True) == []
        assert stone.sources.sync_all() == []
        stone.sources.resume("wiki")
        assert [job.source for job in stone.sources.sync_all()] == ["wiki"]
        stone.work(only="default")
        assert stone.sources.remove("wiki") == 1
        assert stone.stats().documents == 1


@pytest.mark.parametrize(
    ("blocking", "part"),
    [
        (BlockingSources, Sources),
        (BlockingJobs, Jobs),
        (BlockingConversations, Conversations),
        (BlockingFeedback, Feedback),
        (BlockingCollections, Collections),
    ],
)
def test_a_part_has_every_method_of_the_workspaces(blocking: type, part: type) -> None:
    def methods(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    # What takes something to wait for is no thing for a script.
    assert methods(blocking) == methods(part) - {"work_and_report"}


def test_what_would_be_done_and_pages_that_may_not_be_fetched(
    fake_model: FakeEmbedder, data_dir: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.txt"
    page.write_text("The pier has nine lamps.", encoding="utf-8")
    with Ragstone(data_dir=data_dir) as stone:
        assert stone.preview(page).added == 1
        assert not data_dir.exists()
        report = stone.ingest_urls("http://127.0.0.1:1/")
        assert [failure.code for failure in report.failed] == ["address_refused"]


def test_keywords_are_settings(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir, kb="wiki", retrieval={"k": 1}) as stone:
        stone.ingest_items([LETTER, Item("letters", "2", "letters/2", "The ferry is blue.")])
        assert [kb.name for kb in stone.kbs()] == ["wiki"]
        assert len(stone.search("ferry").hits) == 1


def test_settings_can_be_given_whole(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(Settings(data_dir=data_dir, kb="wiki")) as stone:
        stone.ingest_items([LETTER])
        assert stone.stats(kb="wiki").documents == 1


async def test_it_works_inside_a_running_loop(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        stone.ingest_items([LETTER])
        assert stone.search("ferry").hits[0].title == "Ferry"


def test_what_was_stored_is_there_for_the_next_one(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        stone.ingest_items([LETTER])
    with Ragstone(data_dir=data_dir) as stone:
        assert stone.search("ferry").hits[0].title == "Ferry"
        assert stone.ingest_items([LETTER]).unchanged == 1


def test_closing_twice_is_closing_once(fake_model: FakeEmbedder, data_dir: Path) -> None:
    stone = Ragstone(data_dir=data_dir)
    stone.close()
    stone.close()
    assert fake_model.closed


def test_a_closed_one_says_so(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        pass
    with pytest.raises(InputError, match="this Ragstone is closed"):
        stone.search("ferry")


def test_errors_of_the_engine_arrive_as_they_are(fake_model: FakeEmbedder, data_dir: Path) -> None:
    with Ragstone(data_dir=data_dir) as stone:
        with pytest.raises(RagstoneError, match="there is no knowledge base 'default' yet"):
            stone.search("ferry")
        stone.ingest_items([LETTER])
        with pytest.raises(InputError):
            stone.search("   ")
        assert stone.search("ferry").hits


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"retreival": {"k": 3}}, SettingsError),
        ({"retrieval": {"k": 0}}, SettingsError),
        ({"store": {"vectors": "nope"}}, UnknownAdapter),
    ],
)
def test_settings_that_are_wrong_leave_nothing_running(
    keywords: dict[str, object], error: type[Exception], data_dir: Path
) -> None:
    with pytest.raises(error):
        Ragstone(data_dir=data_dir, **keywords)
    assert not data_dir.exists()


class Stuck(FakeEmbedder):
    """Never answers; says when it was reached and when it was told to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.stopped = threading.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("unreachable")


class Interrupted:
    """A future whose reader presses Ctrl-C once the model is at work."""

    def __init__(self, future: Future[object], model: Stuck) -> None:
        self._future = future
        self._model = model

    def result(self) -> object:
        assert self._model.reached.wait(240)
        raise KeyboardInterrupt

    def cancel(self) -> bool:
        return self._future.cancel()


def test_an_interrupt_stops_the_work_and_leaves_the_engine_usable(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = Stuck()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: stuck)
    submit = asyncio.run_coroutine_threadsafe
    with Ragstone(data_dir=data_dir) as stone:
        with monkeypatch.context() as patch:
            patch.setattr(
                asyncio, "run_coroutine_threadsafe", lambda work, loop: Interrupted(submit(work, loop), stuck)
            )
            with pytest.raises(KeyboardInterrupt):
                stone.ingest_items([LETTER])
        assert stuck.stopped.wait(240)
        assert stone.stats().documents == 0


def test_progress_is_told_while_it_works(fake_model: FakeEmbedder, data_dir: Path) -> None:
    seen: list[Progress] = []
    with Ragstone(data_dir=data_dir) as stone:
        stone.ingest_items([LETTER], on_progress=seen.append)
    ended = [(step.done, step.chunks, step.failed, step.document) for step in seen if step.document]
    assert ended == [(1, 1, 0, "letters/1")]
