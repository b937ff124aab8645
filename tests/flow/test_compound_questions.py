"""A question that asks for several things gets an answer to each, or hears what is open, missing or to come."""

from __future__ import annotations

from pathlib import Path

from ragstone import Item, Settings, open_engine
from ragstone.core.answers import AnswerReady
from ragstone.core.search import Exchange, Question
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

FOUNDED = "Harbour Line was founded in 1974 by two fishermen."
RUN = "Maria Lind runs Harbour Line today."
ITEMS = [Item("notes", str(n), f"notes/{n}", text) for n, text in enumerate((RUN, FOUNDED))]


async def test_each_part_is_looked_up_and_answered(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(ITEMS)
        answer = await workspace_of(engine).ask("When was Harbour Line founded and who runs it?")
        assert [sentence.text for sentence in answer.sentences] == [FOUNDED, RUN]
        assert answer.unanswered == ()
        assert (await workspace_of(engine).receipts.check(await workspace_of(engine).receipts.make(answer))).holds


async def test_a_part_without_support_is_named_in_a_stream_too(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(ITEMS)
        question = "Who runs Harbour Line and which colour has a zebra?"
        events = [event async for event in workspace_of(engine).stream(question)]
        last = events[-1]
        assert isinstance(last, AnswerReady)
        assert [sentence.text for sentence in last.answer.sentences] == [RUN]
        assert last.answer.unanswered == ("which colour has a zebra",)
        assert last.answer == await workspace_of(engine).ask(question)


async def test_a_reply_without_an_answer_says_what_is_missing_and_to_come(
    data_dir: Path, fake_model: FakeEmbedder
) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        workspace = workspace_of(engine)
        await workspace.documents.ingest_items(ITEMS)
        await workspace.documents.upload(b"Flask-Caching is a library.", "library.txt")  # no worker reads it
        answer = await workspace.ask("Who wrote the scheduler of Flask-Caching and Maria Lind?")
        assert (answer.status, answer.waiting, answer.missing) == ("no_evidence", 1, ("Flask-Caching",))
        assert "1 document is still being read. No passage mentions Flask-Caching." in answer.answer
        assert (await workspace.receipts.check(await workspace.receipts.make(answer))).holds


async def test_a_name_that_other_passages_have_is_not_missing(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        workspace = workspace_of(engine)
        await workspace.documents.ingest_items(ITEMS)
        asked = Question("Which zebra did Maria Lind and Linus Torvalds paint in Kyoto?", k=1)
        assert (await workspace.ask(asked)).missing == ("Linus Torvalds", "Kyoto")


async def test_what_a_follow_up_leaves_open_can_be_proved(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        workspace = workspace_of(engine)
        await workspace.documents.ingest_items(ITEMS)
        told = []
        for before, asked in (
            ("Who runs Harbour Line?", "When was it founded and which colour has it?"),
            ("Who wrote the scheduler of Flask-Caching?", "When was it built?"),
            ("Who wrote flask_caching?", "Who painted the line?"),
        ):
            answer = await workspace.ask(Question(asked, earlier=[Exchange(before)]))
            report = await workspace.receipts.check(await workspace.receipts.make(answer))
            told.append((answer.unanswered, answer.missing, report.question == asked, report.holds))
        assert told == [
            (("which colour has Harbour Line",), ("colour",), True, True),
            ((), ("Flask-Caching",), True, True),
            ((), ("flask_caching",), True, True),
        ]
