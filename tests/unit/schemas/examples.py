"""Results with fixed ids and times, once with every field set and once with as few as possible."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ragstone.core.activity import Conversation, Gap, GoldenQuery, LoggedSearch, PassageVote, SearchReport, Turn
from ragstone.core.answers import (
    Answer,
    AnswerReady,
    CheckedCitation,
    CheckedClaim,
    CheckedSentence,
    CheckedText,
    Citation,
    CitationsReady,
    ClaimPart,
    Contradiction,
    Evidence,
    Finding,
    ReceiptReport,
    Research,
    Round,
    Sentence,
    SentenceReady,
    Verdict,
)
from ragstone.core.audit import AuditEntry, ErasureTarget, Receipt
from ragstone.core.documents import ChunkRecord, IngestReport
from ragstone.core.errors import NotFoundError, QuotaExceeded
from ragstone.core.jobs import DocumentStatus, Job, JobProgress, Notice, SourceFailures, SourceRecord
from ragstone.core.search import Explanation, QueryAnalysis, SearchResult, Stage, WebResult
from ragstone.core.tenants import Quotas, Stock, Tenant, Usage
from ragstone.core.types import Chunk, Document, Failure, Hit, KnowledgeBase, LiveChunk, Space, Stats

MOMENT = datetime(2026, 1, 31, 9, 30, 15, 250000, tzinfo=UTC)
LATER = datetime(2026, 2, 1, tzinfo=UTC)

HIT = Hit(
    "c1", "d1", "Fares", "guides/fares.md", "Fares > Dogs", 2, "A dog pays half – ½.", 0.75,
    {"dense": 0.5, "lexical": 3.25}, {"year": 2026, "url": "https://ferry.example/fares",
    "date": "2026-01-31"}, 3, 14,
    "Dogs. A dog pays half – ½.", (("sourceFile", "fares.md"), ("year", 1)),
)  # fmt: skip
BARE_HIT = Hit("c2", "d2", "", "rota.html", "", None, "Ada minds it.", 0.0, {}, {"source": "wiki"}, 0, 13)
STAGES = (Stage("dense", 1.5, 1, 20), Stage("rerank", 0.0, 5, 5, "no time"))
PAGE = WebResult("Ferries", "https://www.ferry.example/", "They sail.", "2026-01-31", "brave")
ANALYSIS = QueryAnalysis("product", ("Ada",), ("2026",), ("documents", "internet"), "thorough", "it names a product")
SEARCH = SearchResult(
    "dogs", "dogs pay", "balanced", (HIT, BARE_HIT), STAGES, ("dense: model failed",), 12.5, "web", (PAGE,),
    (BARE_HIT,),
    ANALYSIS,
)  # fmt: skip
BARE_SEARCH = SearchResult("dogs", "dogs", "fast", (), (), (), 0.0)
EXPLANATION = Explanation("dogs", "d1", "Fares", False, "rerank", "it fell", ({"stage": "dense", "rank": 3},))

CITATION = Citation(1, "A dog pays.", "c1", "d1", "Fares", "guides/fares.md", 2, "Dogs", 3, 14, "ferry.example")
SENTENCE = Sentence("A dog pays.", "supported", (1, 2))
ANSWER = Answer(
    "Do dogs pay?", "A dog pays. [1]", (SENTENCE,), (CITATION, replace(CITATION, n=2, page=None, site="")),
    "answered",
    ("llm: down",), (Contradiction("A dog pays.", "Dogs are free.", "number", "c2", "d2", "Old", "o", None, "",
    0, 9),),
    ("who runs it",),
)  # fmt: skip
NO_ANSWER = Answer("Why?", "Nothing.", (), (), "no_evidence")
EVENTS = (SentenceReady(SENTENCE, "A dog pays. [1]"), CitationsReady((CITATION,)), AnswerReady(NO_ANSWER))
CHECKED = ReceiptReport(
    "Do dogs pay?", "2026-01-31T09:30:15Z", ("its digest does not fit",),
    (CheckedCitation(1, "moved", "d1", "Fares", "guides/fares.md", "A dog pays.", 30, 41),),
    (CheckedSentence("A dog pays.", False, "the quote is gone"),), ("title: Fares is called Prices",),
    ("who runs it",),
)  # fmt: skip

EVIDENCE = Evidence(
    "A dog pays half.", "guide", 0.8, "supported", 0.9, 0.05, ("number",), "d1", "c1", "Fares", "fares.md", 2,
    "Dogs", 4, 20
)  # fmt: skip
VERDICT = Verdict(
    "Dogs pay half.", "LIKELY", "mixed", 0.9, (EVIDENCE,) * 4, (ClaimPart("Dogs pay half.", "VERIFIED",
    "supported", 1.0),),
    1, "checks", ("dense",),
)  # fmt: skip
CHECKED_TEXT = CheckedText((CheckedClaim(3, 17, 2, None, VERDICT),), 4, 5)
RESEARCH = Research(
    "dogs", (Finding(HIT, 0.5, ("dogs", "dogs pay"), True), Finding(BARE_HIT, 0.25, ("dogs",), False)),
    ("dogs", "dogs pay"), (Round(("dogs",), 2, 1),), ("cats",), "nothing_new", 33.5, ("dense",),
)  # fmt: skip

FAILURE = Failure("a.pdf", "parse_failed", "it is cut", "send it again")
INGESTED = IngestReport(
    1, 2, 3, (FAILURE,), 6, 40, 1.25, ("a remark",), 2, ("dense",), 4, 5, 6, STAGES, 7
)  # fmt: skip
DOCUMENT = Document(
    "d1", "demo", "files", "/guides/fares.md", "guides/fares.md", "Fares", "beef", 3, 5, 90, "text/markdown",
    {"year": 2026}, "recipe", True, MOMENT, MOMENT, LATER,
)  # fmt: skip
CHUNK = LiveChunk(
    "c1", "d1", 3, Chunk(1, "A dog pays.", 3, 14, "Dogs. ", None, ("Fares", "Dogs"), tokens=4), "Fares",
    "fares.md",
    "files", {},
)  # fmt: skip
RECORD = ChunkRecord("c1", "d1", "A dog pays.", 1, 4, "mini", "c1", 2, "Dogs", {"author": None}, MOMENT)
SPACE = Space(1, "mini@1", 384, 2, "live")
STATS = Stats(2, 5, 90, 1, 7, 4096, "mini@1")
KBS = (KnowledgeBase(1, "demo", SPACE), KnowledgeBase(2, "new", None))

JOB = Job(
    "j1", "document", "demo", "running", 5, "d1", "wiki", "/fares.md", "fares.md", "beef", 12, {},
    JobProgress("embed", 1, 2, 3, 4, 55, 1.5, {"queued": 1}, ("slow",), "try again"), 2, 9, "host-1", "busy",
    "it is busy",
    MOMENT, LATER, None,
)  # fmt: skip
DONE = replace(JOB, state="completed", progress=JobProgress(), error="", error_code="", finished_at=LATER)
STATUS = DocumentStatus(
    "d1", "processing", "fares.md", "Fares", 5, 90, MOMENT, "", JOB, "fares.md", "md", 12, "documents/t1/d1/f1",
    "What it costs", "prices", ("ferry",), MOMENT, "mini",
)  # fmt: skip
BARE_STATUS = DocumentStatus("d2", "failed", "b.md", "", 0, 0, None, "it is cut", None)
SOURCE = SourceRecord(
    "s1", "demo", "wiki", "files", {"path": "/wiki", "password": "hush",
    "urls": ["https://me:hush@ferry.example/all"]},
    "daily", {"page": 3}, False, LATER, MOMENT, "", MOMENT, SourceFailures(2, (FAILURE,)),
)  # fmt: skip
NOTICE = Notice(4, "failed", "j1", "d1", "fares.md", "it is cut", MOMENT, read=True)

TENANT = Tenant(
    "t1", "acme", "active", MOMENT, Quotas(5, cost_per_month=2.5), 30, {"retrieval.k": 3}, "acme"
)  # fmt: skip
USAGE = Usage(
    Stock(1, 2, 3, 4), Stock(5, 6, 7, 8), 9, 1.25, {"llm": 1.25}, {"documents": 2.0}, {"llm": 900.0},
    {"2026-01": {"llm": 1.25}}, {"2026-01-31": 3}, {"embedding": 0.002},
)  # fmt: skip
RECEIPTS = (
    Receipt("acme", ErasureTarget("source", "wiki", "demo"), {"ledger": {"documents": 2}},
    {"ledger": {"documents": 0}}, 0, True,
            (), MOMENT),
    Receipt("acme", ErasureTarget("document", "d1"), {}, {"files": {"originals": 1}}, None, False,
    ("a file is open",), MOMENT),
)  # fmt: skip
ENTRY = AuditEntry(
    MOMENT, "t1", "acme", "key:7f3a", "document.delete", "failed", "d1", "demo", 1, ("d1",),
    {"ledger.chunks": 12}, "busy"
)  # fmt: skip

VOTE = PassageVote(MOMENT, "demo", "dogs", "c1", "d1", "up", "ada")
LOGGED = LoggedSearch(
    MOMENT, "demo", "dogs", "fast", 12.5, 3, 0.75, None, 0.5, ("pay",), (), "t1", "talk", "product",
    ("documents", "internet"), ("documents",), 1, 2, 3.5, False, "it broke",
)  # fmt: skip
REPORT = SearchReport(5, 0, 1.5, 2.5, 3.5, None, None, None)
GOLDEN = GoldenQuery("demo", "dogs", ("d1", "d2"), "manual")
GAP = Gap(("cats", "kittens"), 3, MOMENT, "nothing found", ("cats",))
TALK = Conversation("talk", "demo", 2, MOMENT, LATER)
TURN = Turn(MOMENT, "demo", "talk", "Do dogs pay?", "They do.", ("d1",))

NOT_FOUND = NotFoundError("no document x", hint="list them")
NO_ROOM = QuotaExceeded("too much", hint="wait", retry_after=1.25)
