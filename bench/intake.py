"""Sources and workers: how much of the model's speed is left, what an unchanged source costs, and large files."""

from __future__ import annotations

import asyncio
import io
import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

from bench.data import load
from bench.report import Row, ratio_row, resident_mb
from ragstone.core.types import Item
from ragstone.engine.engine import Engine, open_engine
from ragstone.settings.tree import JobSettings, Settings
from ragstone.testing.workspaces import workspace_of

FILES = 10_000
SAMPLE = 1_000
ABSTRACTS = 6
PAGED_ABSTRACTS = 10_000
SAMPLED_FILES = 100
PAGES = 1_000
MBOX_MB = 100
PIXELS = 160


def workers(folder: Path) -> list[Row]:
    """10,000 chunks in files of a few pages, by two workers."""
    return asyncio.run(_workers(list(_pages(load(folder).texts))))


def _pages(texts: list[str]) -> Iterator[str]:
    """Files of six abstracts each, more than once over: each time the abstracts begin with another sentence."""
    for turn in itertools.count():
        turned = [_turned(text, turn) for text in texts]
        for first in range(0, len(turned), ABSTRACTS):
            yield "\n\n".join(turned[first : first + ABSTRACTS])
        if (turn + 1) * len(texts) >= PAGED_ABSTRACTS:
            return


def _turned(text: str, turn: int) -> str:
    sentences = text.split(". ")
    first = turn % len(sentences)
    return ". ".join([*sentences[first:], *sentences[:first]])


async def _workers(texts: list[str]) -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        docs = _written(Path(place) / "docs", texts[SAMPLED_FILES:])
        settings = Settings(data_dir=Path(place) / "data", jobs=JobSettings(workers=2))
        async with open_engine(settings) as engine:
            # What the model alone does with such chunks, before and after.
            sample = await _chunks_of(engine, texts[:SAMPLED_FILES])
            bare = [await _bare_rate(engine, sample)]
            await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
            seconds = await _timed_sync(engine)
            bare.append(await _bare_rate(engine, sample))
            stats = await workspace_of(engine).knowledge_bases.stats()
    rate = stats.chunks / seconds
    measured = f"{rate:.1f} chunks/s, {seconds:.0f} s, bare {bare[0]:.1f} and {bare[1]:.1f} chunks/s"
    return [
        Row("workers", f"{stats.chunks:,} chunks in {stats.documents:,} files, two workers", measured),
        ratio_row("workers", "two workers / bare embedder", 2 * rate / sum(bare), at_least=0.85),
    ]


async def _chunks_of(engine: Engine, texts: list[str]) -> list[str]:
    items = [Item("sample", str(number), f"{number}.txt", text) for number, text in enumerate(texts)]
    await workspace_of(engine).documents.ingest_items(items, kb="sample")
    documents = await workspace_of(engine).documents.list(kb="sample", limit=len(items))
    chunks = [await workspace_of(engine).documents.chunks(document.id) for document in documents]
    return [one.chunk.contextual for found in chunks for one in found]


def sync(folder: Path) -> list[Row]:
    """10,000 files of one chunk each: synced by two workers, then synced again unchanged."""
    return asyncio.run(_sync(list(_halves(load(folder).texts))[:FILES]))


def _halves(texts: list[str]) -> Iterator[str]:
    for text in texts:
        words = text.split()
        middle = len(words) // 2
        yield from (" ".join(words[:middle]), " ".join(words[middle:]))


async def _sync(texts: list[str]) -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        docs = _written(Path(place) / "docs", texts)
        settings = Settings(data_dir=Path(place) / "data", jobs=JobSettings(workers=2))
        async with open_engine(settings) as engine:
            sample = random.Random(1).sample(texts, SAMPLE)
            bare = await _bare_rate(engine, sample)
            await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
            first = await _timed_sync(engine)
            stats = await workspace_of(engine).knowledge_bases.stats()
            bare = (bare + await _bare_rate(engine, sample)) / 2
            calls = _count_calls(engine)
            second = await _timed_sync(engine)
            (docs / "0.txt").write_text("One file has changed.")
            embedded = len(calls)
            await _timed_sync(engine)
    rate = stats.chunks / first
    return [
        Row("sync", "bare embedder", f"{bare:.0f} chunks/s"),
        Row("sync", f"{stats.documents:,} files, two workers", f"{rate:.0f} chunks/s, {first:.0f} s"),
        ratio_row("sync", "files of one short chunk, two workers / bare embedder", rate / bare, at_least=0.85),
        Row(
            "sync",
            "second sync, nothing changed",
            f"{second:.1f} s, {second / first:.1%} of the first, {embedded} texts embedded",
            "< 5 %, 0 texts",
            second / first < 0.05 and embedded == 0,
        ),
        Row(
            "sync",
            "third sync, one file changed",
            f"{len(calls) - embedded} text embedded",
            "1",
            len(calls) == embedded + 1,
        ),
    ]


def _written(docs: Path, texts: list[str]) -> Path:
    docs.mkdir()
    for number, text in enumerate(texts):
        (docs / f"{number}.txt").write_text(text)
    return docs


async def _bare_rate(engine: Engine, sample: list[str]) -> float:
    embedder = engine._components.embedder
    await embedder.embed(sample[:64], "document")
    started = time.perf_counter()
    await embedder.embed(sample, "document")
    return len(sample) / (time.perf_counter() - started)


async def _timed_sync(engine: Engine) -> float:
    started = time.perf_counter()
    await workspace_of(engine).sources.sync("docs")
    await engine.worker().run(until_idle=True)
    return time.perf_counter() - started


def _count_calls(engine: Engine) -> list[str]:
    embedder = engine._components.embedder
    asked: list[str] = []
    embed = embedder.embed

    async def counted(texts: list[str], role: str = "document") -> object:
        asked.extend(texts)
        return await embed(texts, role)  # type: ignore[arg-type]

    embedder.embed = counted  # type: ignore[method-assign,assignment]
    return asked


def large(folder: Path) -> list[Row]:
    """A book and a mailbox: memory over the model's, and how often there was news."""
    texts = load(folder).texts
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for name, make in ((f"{PAGES:,}-page PDF", _book), (f"{MBOX_MB} MB mbox", _mailbox)):
            file = make(Path(place), texts)
            rows += asyncio.run(_ingest(file, name, Path(place) / f"data-{file.suffix[1:]}"))
    return rows


async def _ingest(file: Path, name: str, data: Path) -> list[Row]:
    news: list[float] = []
    async with open_engine(Settings(data_dir=data)) as engine:
        await engine.warm(engine.settings.tenant)
        _reset_peak()
        before = resident_mb()
        started = time.perf_counter()
        ticking = asyncio.create_task(_progress(engine, news))
        if file.suffix == ".pdf":
            await workspace_of(engine).documents.upload(await asyncio.to_thread(file.read_bytes), file.name)
            await engine.worker().run(until_idle=True)
            failed = len(await workspace_of(engine).jobs.list(states=("failed",)))
        else:
            failed = len(
                (
                    await workspace_of(engine).documents.ingest(
                        file, on_progress=lambda _: news.append(time.perf_counter())
                    )
                ).failed
            )
        seconds = time.perf_counter() - started
        ticking.cancel()
        stats = await workspace_of(engine).knowledge_bases.stats()
    peak = _peak_mb() - before
    gap = max((after - before for before, after in itertools.pairwise(news)), default=seconds)
    return [
        Row("large", name, f"{stats.documents:,} documents, {stats.chunks:,} chunks, {failed} failed, {seconds:.0f} s"),
        Row("large", f"{name}: memory over the model's", f"{peak:.0f} MB", "< 1024 MB", peak < 1024),
        Row("large", f"{name}: longest time without news", f"{gap:.1f} s"),
    ]


async def _progress(engine: Engine, news: list[float]) -> None:
    last = None
    while True:
        jobs = await workspace_of(engine).jobs.list(limit=1)
        if jobs and jobs[0].progress != last:
            last = jobs[0].progress
            news.append(time.perf_counter())
        await asyncio.sleep(0.2)


def _book(place: Path, texts: list[str]) -> Path:
    from reportlab.pdfgen.canvas import Canvas

    file = place / "book.pdf"
    canvas = Canvas(str(file), invariant=True)
    words = " ".join(texts[:3000]).split()
    for page in range(PAGES):
        canvas.setFont("Helvetica", 10)
        for line in range(45):
            start = (page * 45 + line) * 11 % (len(words) - 11)
            canvas.drawString(50, 790 - 16 * line, " ".join(words[start : start + 11]))
        canvas.showPage()
    canvas.save()
    return file


def _mailbox(place: Path, texts: list[str]) -> Path:
    """Mails with a page and a picture attached as PDF: what a mailbox of this size is made of."""
    file = place / "mail.mbox"
    size = number = 0
    with file.open("wb") as mailbox:
        while size < MBOX_MB * 1024 * 1024:
            mail = EmailMessage()
            mail["Subject"], mail["From"], mail["To"] = (f"Paper {number}", "ada@lab.example", "ben@lab.example")
            mail["Date"], mail["Message-ID"] = "Mon, 2 Nov 2026 09:00:00 +0000", f"<{number}@lab.example>"
            mail.set_content(texts[number % len(texts)])
            attached = _picture_page(texts[(number + 1) % len(texts)], number)
            mail.add_attachment(attached, maintype="application", subtype="pdf", filename=f"{number}.pdf")
            raw = b"From ada@lab.example Mon Nov  2 09:00:00 2026\n" + mail.as_bytes() + b"\n"
            size += mailbox.write(raw)
            number += 1
    return file


def _picture_page(text: str, number: int) -> bytes:
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    noise = random.Random(number).randbytes(PIXELS * PIXELS * 3)
    picture = Image.frombytes("RGB", (PIXELS, PIXELS), noise)
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True)
    canvas.drawString(50, 790, text[:90])
    canvas.drawImage(ImageReader(picture), 50, 400)
    canvas.save()
    return file.getvalue()


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("VmHWM"))) / 1024
