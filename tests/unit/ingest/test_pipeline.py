"""The ingest run on a real SQLite store, with a model that tells what it was asked."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable, StoreFull
from ragstone.core.protocols import Embedder
from ragstone.core.settings import ChunkingSettings
from ragstone.core.tokens import WordTokenizer
from ragstone.core.types import Document, Embeddings, Failure, IngestReport, Item, KnowledgeBase, Parsed, Role
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.pipeline import LOOK_UP, WAVE_CHUNKS, IngestPipeline, Progress
from ragstone.ingest.prepare import Preparer
from ragstone.models.fallback import FallbackEmbedder
from ragstone.stores.ledger.sqlite import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer, SqliteLexicalIndex
from ragstone.stores.residents import Residents
from ragstone.stores.vectors.sqlite import SqliteVectorIndex
from ragstone.testing.fakes import FakeEmbedder

WORDS = ("pier", "buoy", "gull", "rope", "crane", "ferry", "anchor", "tide")


async def parsed(content: bytes, name: str) -> Parsed:
    return parse(content, name)


class Kit:
    """A store, a model, and what is in them."""

    def __init__(self, folder: Path) -> None:
        self.ledger = SqliteLedger(folder, [Fts5Writer()])
        self.embedder = FakeEmbedder()
        self.max_chunks = 1000

    async def run(
        self,
        items: Iterable[Item | Failure],
        *,
        embedder: Embedder | None = None,
        model: str | None = None,
        seen: list[Progress] | None = None,
    ) -> IngestReport:
        model_in_use = embedder or self.embedder
        chunker = build_chunker(ChunkingSettings(strategy="sentence", size=8, overlap=0), WordTokenizer())
        preparer = Preparer(parsed, chunker, model or model_in_use.model.id, self.max_chunks)
        pipeline = IngestPipeline(self.ledger, preparer, model_in_use)
        return await pipeline.run("t", "default", items, seen.append if seen is not None else None)

    async def kb(self) -> KnowledgeBase:
        kb = await self.ledger.kb("t", "default")
        assert kb is not None
        return kb

    async def document(self, external_id: str) -> Document:
        return (await self.ledger.find("t", await self.kb(), "test", [external_id]))[external_id]

    async def names(self) -> list[str]:
        documents = await self.ledger.documents("t", await self.kb())
        return sorted(document.external_id for document in documents)

    async def by_word(self, query: str) -> set[str]:
        index = SqliteLexicalIndex(self.ledger, Residents(16))
        return await self._owners(
            [one.chunk_id for one in await index.search("t", await self.kb(), query, 50)]
        )

    async def by_meaning(self, query: str) -> set[str]:
        index = SqliteVectorIndex(self.ledger, Residents(16))
        vector = (await FakeEmbedder().embed([query], "query")).vectors[0]
        found = await index.search("t", await self.kb(), vector, 50)
        return await self._owners([one.chunk_id for one in found])

    async def _owners(self, chunk_ids: Sequence[str]) -> set[str]:
        live = await self.ledger.chunks("t", await self.kb(), chunk_ids)
        found = [await self.ledger.document("t", chunk.document_id) for chunk in live.values()]
        return {document.external_id for document in found if document}

    def embedded_texts(self) -> list[str]:
        """Texts that were sent to the model since the last look."""
        texts = [text for call, _ in self.embedder.calls for text in call]
        self.embedder.calls.clear()
        return texts


@pytest.fixture
async def kit(data_dir: Path) -> AsyncIterator[Kit]:
    kit = Kit(data_dir)
    yield kit
    await kit.ledger.close()


def item(name: str, content: bytes | str | None = None) -> Item:
    return Item("test", name, f"test/{name}", f"The {name} is here." if content is None else content)


def counts(report: IngestReport) -> tuple[int, int, int, int]:
    return report.added, report.updated, report.unchanged, len(report.failed)


async def test_new_documents_are_added(kit: Kit) -> None:
    report = await kit.run([item("pier"), item("buoy", "The buoy is red. The bell on it rings at night.")])
    assert counts(report) == (2, 0, 0, 0)
    assert (report.documents, report.chunks) == (2, 3)
    assert report.degraded == report.warnings == ()
    assert await kit.names() == ["buoy", "pier"]
    assert await kit.by_word("bell") == {"buoy"}
    assert "buoy" in await kit.by_meaning("bell rings")
    document = await kit.document("buoy")
    assert (document.version, document.chunks, document.embedded) == (1, 2, True)
    assert await kit.ledger.text("t", document.id) == "The buoy is red. The bell on it rings at night."


@pytest.mark.req("R-EMB-16")
async def test_unchanged_documents_cost_no_call_of_the_model(kit: Kit) -> None:
    items = [item(name) for name in WORDS]
    await kit.run(items)
    assert len(kit.embedded_texts()) == len(WORDS)
    report = await kit.run(items)
    assert counts(report) == (0, 0, len(WORDS), 0)
    assert kit.embedder.calls == []
    assert (await kit.document("pier")).version == 1


@pytest.mark.req("R-REL-12")
async def test_one_changed_document_costs_one_document(kit: Kit) -> None:
    items = [item(name) for name in WORDS]
    await kit.run(items)
    kit.embedded_texts()
    report = await kit.run([item("pier", "The pier has gone."), *items[1:]])
    assert counts(report) == (0, 1, len(WORDS) - 1, 0)
    assert kit.embedded_texts() == ["The pier has gone."]
    assert (await kit.document("pier")).version == 2
    assert await kit.by_word("pier gone") == {"pier"}
    assert await kit.ledger.text("t", (await kit.document("pier")).id) == "The pier has gone."


@pytest.mark.req("R-EMB-16")
async def test_a_chunk_that_stays_in_a_changed_document_is_not_embedded_again(kit: Kit) -> None:
    await kit.run([item("pier", "The pier is made of oak. It has nine lamps.")])
    kit.embedded_texts()
    await kit.run([item("pier", "The pier is made of oak. It has ten lamps.")])
    assert kit.embedded_texts() == ["It has ten lamps."]


@pytest.mark.req("R-EMB-16")
async def test_equal_text_is_embedded_once_within_a_run_and_across_runs(kit: Kit) -> None:
    await kit.run([item("one", "Same words."), item("two", "Same words.")])
    assert kit.embedded_texts() == ["Same words."]
    await kit.run([item("three", "Same words.")])
    assert kit.embedder.calls == []
    assert await kit.by_meaning("same words") == {"one", "two", "three"}


async def test_an_item_that_comes_twice_in_a_run_is_one_document(kit: Kit) -> None:
    report = await kit.run([item("pier", "First words."), item("pier", "Second words.")])
    assert report.documents == 1
    assert await kit.ledger.text("t", (await kit.document("pier")).id) == "Second words."


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (b"", "empty.txt", "empty_document"),
        (b" \n\n ", "blank.txt", "empty_document"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "picture.txt", "unsupported_format"),
        (bytes(2000), "zeros.txt", "parse_failed"),
        (b"One\x00 two.", "nul.txt", "parse_failed"),
        (b"a,b", "table.csv", "unsupported_format"),
        (b"%PDF-1.7 cut off", "cut.pdf", "parse_failed"),
        (b"PK\x03\x04 cut off", "cut.docx", "parse_failed"),
        ("", "text", "empty_document"),
        ("One two three. " * 50, "long", "parser_limit"),
    ],
)
async def test_an_item_that_fails_is_named_and_the_rest_go_on(
    kit: Kit, content: bytes | str, name: str, code: str
) -> None:
    kit.max_chunks = 20
    report = await kit.run([item("pier"), item(name, content), item("buoy")])
    (failure,) = report.failed
    assert (failure.uri, failure.code) == (f"test/{name}", code)
    assert name in failure.error
    assert counts(report) == (2, 0, 0, 1)
    assert await kit.names() == ["buoy", "pier"]


async def test_text_with_nul_and_lone_surrogates_is_taken_without_them(kit: Kit) -> None:
    report = await kit.run([item("nul", "One\x00 two."), item("half", "One \ud800 two.")])
    assert counts(report) == (2, 0, 0, 0)
    assert await kit.ledger.text("t", (await kit.document("nul")).id) == "One two."
    assert await kit.ledger.text("t", (await kit.document("half")).id) == "One \ufffd two."


async def test_failures_of_the_source_and_items_without_identity_are_passed_on(kit: Kit) -> None:
    report = await kit.run([Failure("test/x", "too_large", "too large"), item("pier"), item("\udcff")])
    assert report.failed == (
        Failure("test/x", "too_large", "too large"),
        Failure("test/\ufffd", "invalid_input", "the external id of 'test/\ufffd' is not valid Unicode"),
    )
    assert report.added == 1


async def test_a_new_version_that_fails_leaves_the_old_one_live(kit: Kit) -> None:
    await kit.run([item("pier.txt", b"The pier is oak.")])
    report = await kit.run([item("pier.txt", b"")])
    assert [failure.code for failure in report.failed] == ["empty_document"]
    assert await kit.by_word("oak") == {"pier.txt"}


async def test_warnings_of_the_parser_are_in_the_report(kit: Kit) -> None:
    report = await kit.run([item("pier", "The pi\u200ber is oak.")])
    assert report.warnings == ("test/pier: 1 hidden characters were removed",)


@pytest.mark.req("R-EMB-19", "R-REL-21")
async def test_a_chunk_that_the_model_refuses_is_skipped_and_counted(kit: Kit) -> None:
    kit.embedder.refuse = {"It has nine lamps."}
    report = await kit.run([item("pier", "The pier is made of oak. It has nine lamps."), item("buoy")])
    assert counts(report) == (2, 0, 0, 0)
    assert report.skipped_chunks == 1
    assert await kit.by_word("lamps") == {"pier"}
    index = SqliteVectorIndex(kit.ledger, Residents(16))
    vector = (await FakeEmbedder().embed(["lamps"], "query")).vectors[0]
    assert len(await index.search("t", await kit.kb(), vector, 50)) == 2
    assert counts(await kit.run([item("buoy")])) == (0, 0, 1, 0)


@pytest.mark.req("R-DOM-40")
async def test_without_a_model_documents_are_found_by_word_and_the_next_run_heals_them(kit: Kit) -> None:
    items = [item("pier"), item("buoy")]
    kit.embedder.errors = [ModelError("the model fell over")]
    report = await kit.run(items)
    assert counts(report) == (2, 0, 0, 0)
    assert report.degraded == ("embedding: the model fell over",)
    assert not (await kit.document("pier")).embedded
    assert (await kit.ledger.stats("t", await kit.kb())).unembedded == 2
    assert (await kit.kb()).space is None
    assert await kit.by_word("pier") == {"pier"}
    healed = await kit.run(items)
    assert (counts(healed), healed.degraded) == ((0, 2, 0, 0), ())
    assert (await kit.document("pier")).embedded
    assert await kit.by_meaning("pier") == {"pier", "buoy"}
    assert counts(await kit.run(items)) == (0, 0, 2, 0)


async def test_a_document_that_loses_its_model_in_an_update_is_still_found_by_word(kit: Kit) -> None:
    await kit.run([item("pier"), item("buoy")])
    kit.embedder.errors = [ModelError("the model fell over")]
    report = await kit.run([item("pier", "The pier has gone."), item("buoy")])
    assert (counts(report), report.degraded) == ((0, 1, 1, 0), ("embedding: the model fell over",))
    assert await kit.by_word("gone") == {"pier"}
    assert await kit.by_meaning("pier") == {"buoy"}


async def test_a_model_that_is_not_installed_is_an_error_before_anything_is_stored(kit: Kit) -> None:
    kit.embedder.errors = [ModelUnavailable("no weights")]
    with pytest.raises(ModelUnavailable, match="no weights"):
        await kit.run([item("pier")])
    assert await kit.names() == []


@pytest.mark.req("R-EMB-18")
async def test_vectors_of_a_fallback_never_enter_a_space_of_another_model(kit: Kit) -> None:
    await kit.run([item("pier")])
    broken = FakeEmbedder(errors=[ModelError("the model fell over")])
    both = FallbackEmbedder(broken, FakeEmbedder(name="other", dimension=32))
    configured = both.model.id
    reports = [await kit.run([item(name)], embedder=both, model=configured) for name in ("buoy", "gull")]
    for report in reports:
        assert counts(report) == (1, 0, 0, 0)
        assert report.degraded == ("embedding: other@1 answered, but this index is of fake@1",)
    space = (await kit.kb()).space
    assert space is not None
    assert (space.model, space.dimension) == ("fake@1", 64)
    assert await kit.by_meaning("buoy") == {"pier"}
    assert await kit.by_word("buoy") == {"buoy"}


@pytest.mark.req("R-EMB-18")
async def test_a_fallback_may_open_a_space_of_its_own(kit: Kit) -> None:
    broken = FakeEmbedder(errors=[ModelError("the model fell over")])
    both = FallbackEmbedder(broken, FakeEmbedder(name="other", dimension=32))
    configured = both.model.id
    for name in ("buoy", "gull"):
        report = await kit.run([item(name)], embedder=both, model=configured)
        assert (counts(report), report.degraded) == ((1, 0, 0, 0), ())
    space = (await kit.kb()).space
    assert space is not None
    assert (space.model, space.dimension) == ("other@1", 32)


class Dying(FakeEmbedder):
    """Answers once, then never again."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        made = await super().embed(texts, role)
        self.errors = [ModelError("the model fell over")]
        return made


@pytest.mark.req("R-EMB-18")
async def test_a_model_that_dies_amid_the_first_run_leaves_one_space(kit: Kit) -> None:
    both = FallbackEmbedder(Dying(), FakeEmbedder(name="other", dimension=32))
    report = await kit.run([item(f"n{number}") for number in range(3 * WAVE_CHUNKS)], embedder=both)
    assert counts(report) == (3 * WAVE_CHUNKS, 0, 0, 0)
    assert report.degraded == ("embedding: other@1 answered, but this index is of fake@1",)
    space = (await kit.kb()).space
    assert space is not None
    assert space.model == "fake@1"
    assert (await kit.ledger.stats("t", await kit.kb())).unembedded == 2 * WAVE_CHUNKS


@pytest.mark.req("R-REL-10")
async def test_another_configured_model_is_refused_before_anything_is_written(kit: Kit) -> None:
    await kit.run([item("pier")])
    before = await kit.ledger.sequence("t")
    with pytest.raises(ModelMismatch) as caught:
        await kit.run([item("buoy")], embedder=FakeEmbedder(name="other"))
    assert str(caught.value) == "knowledge base 'default' was built with fake@1, not with other@1"
    assert caught.value.hint == "set embedding.model to fake, or ingest into another --kb"
    assert await kit.ledger.sequence("t") == before
    assert await kit.names() == ["pier"]


async def test_progress_is_monotone_and_complete(kit: Kit) -> None:
    items: list[Item | Failure] = [item(f"n{number}") for number in range(3 * LOOK_UP)]
    await kit.run(items[:LOOK_UP])
    items += [item("empty", ""), Failure("test/x", "too_large", "too large")]
    seen: list[Progress] = []
    report = await kit.run(items, seen=seen)
    assert counts(report) == (2 * LOOK_UP, 0, LOOK_UP, 2)
    assert [step.done for step in seen] == list(range(1, len(items) + 1))
    assert sorted(step.document for step in seen) == sorted(entry.uri for entry in items)
    for before, after in itertools.pairwise(seen):
        assert before.chunks <= after.chunks
        assert before.failed <= after.failed
    assert (seen[-1].chunks, seen[-1].failed) == (2 * LOOK_UP, 2)


async def test_a_source_that_breaks_off_surfaces_its_error_and_what_was_stored_stays(kit: Kit) -> None:
    def source() -> Iterator[Item]:
        yield from (item(f"n{number}") for number in range(LOOK_UP))
        yield item("lost")
        raise ConnectionResetError("the mailbox hung up")

    with pytest.raises(ConnectionResetError, match="the mailbox hung up"):
        await kit.run(source())
    assert len(await kit.names()) == LOOK_UP
    assert counts(await kit.run([item("n0"), item("more")])) == (1, 0, 1, 0)


async def test_a_store_that_fails_ends_the_run_with_its_error(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.run([item("pier")])

    def full(tenant: str) -> object:
        raise StoreFull("no space left on the device")

    async def find(*_: object) -> dict[str, Document]:
        monkeypatch.setattr(kit.ledger, "transaction", full)
        return {}

    monkeypatch.setattr(kit.ledger, "find", find)
    with pytest.raises(StoreFull, match="no space left"):
        await kit.run([item(f"n{number}") for number in range(100)])
    monkeypatch.undo()
    assert await kit.names() == ["pier"]
    assert counts(await kit.run([item("buoy")])) == (1, 0, 0, 0)


class Gate(FakeEmbedder):
    """Says when it was reached and then never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_a_cancelled_run_leaves_everything_usable(kit: Kit) -> None:
    await kit.run([item("pier")])
    gate = Gate()
    run = asyncio.create_task(kit.run([item(f"n{number}") for number in range(200)], embedder=gate))
    await gate.reached.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert len(asyncio.all_tasks()) == 1
    assert await kit.names() == ["pier"]
    assert counts(await kit.run([item("pier"), item("n0")])) == (1, 0, 1, 0)


async def test_documents_larger_than_a_wave_and_many_small_ones(kit: Kit) -> None:
    sentences = [f"Sentence {number} of the long one." for number in range(2 * WAVE_CHUNKS)]
    long = item("long", "\n\n".join(sentences))
    small = [item(f"n{number}") for number in range(WAVE_CHUNKS + 10)]
    report = await kit.run([*small[:20], long, *small[20:]])
    assert counts(report) == (len(small) + 1, 0, 0, 0)
    assert report.chunks == len(small) + len(sentences)
    document = await kit.document("long")
    assert document.chunks == len(sentences)
    chunks = await kit.ledger.document_chunks("t", document.id)
    assert [chunk.chunk.text for chunk in chunks] == sentences
    assert sorted(kit.embedded_texts()) == sorted([*sentences, *(str(one.content) for one in small)])
    known = await kit.ledger.known_vectors("t", await kit.kb(), sentences[-1:])
    assert known[sentences[-1]] @ (await FakeEmbedder().embed(sentences[-1:])).vectors[0] > 0.999


async def test_the_model_gets_full_batches_of_small_documents(kit: Kit) -> None:
    await kit.run([item(f"n{number}") for number in range(2 * WAVE_CHUNKS)])
    assert [len(texts) for texts, _ in kit.embedder.calls] == [WAVE_CHUNKS, WAVE_CHUNKS]


@pytest.mark.req("R-ING-38")
async def test_a_kb_that_does_not_exist_is_made(kit: Kit) -> None:
    assert await kit.ledger.kb("t", "default") is None
    report = await kit.run([])
    assert counts(report) == (0, 0, 0, 0)
    assert (report.documents, report.chunks) == (0, 0)
    assert (await kit.kb()).name == "default"
