"""Every command with `--json` prints the shape that its golden file has, to the order of the keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.doubles.newsroom import newsroom
from tests.golden_files import FOLDER, check_golden, steady
from tests.serve.cli.conftest import Cli

from ragstone.schemas.errors import ErrorSchema
from ragstone.serve.cli.main import app
from ragstone.serve.cli.render.output import write_json
from ragstone.settings.tree import EmbeddingSettings
from ragstone.testing.fakes import FakeEmbedder


class Shapes:
    """What the commands of one test printed, by command."""

    def __init__(self, cli: Cli, here: Path) -> None:
        self._cli, self._here = cli, here
        self.seen: dict[str, Any] = {}

    def __call__(self, name: str, *arguments: str | Path) -> Any:
        """Run a command with `--json`, keep its shape under a name, and return what it printed."""
        ran = self._cli(*arguments, "--json")
        value = ran.json
        indent = None if list(value) == ["error"] else 2  # an error may end a stream of lines
        assert ran.out == json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
        self.seen[name] = steady(value, self._here)
        return value

    def lines(self, name: str, *arguments: str | Path) -> None:
        """Run a command that prints a line for each event."""
        ran = self._cli(*arguments, "--json")
        values = [json.loads(line) for line in ran.out.splitlines()]
        assert ran.out == "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
        self.seen[name] = steady(values, self._here)


@pytest.fixture
def shapes(filled: Cli, tmp_path: Path) -> Shapes:
    """Three documents and no shapes yet."""
    return Shapes(filled, tmp_path)


@pytest.fixture
def nothing(cli: Cli, tmp_path: Path) -> Shapes:
    """No documents and no shapes yet."""
    return Shapes(cli, tmp_path)


def _document(shapes: Shapes, name: str) -> str:
    listed = shapes(f"documents {name}", "documents", "--where", json.dumps({"filename": name}))
    return str(listed["documents"][0]["id"])


def test_questions(shapes: Shapes, tmp_path: Path) -> None:
    shapes("search", "search", "What does a dog pay?", "-k", "2")
    shapes("search nothing", "search", "dog", "--where", '{"filename": "none.md"}')
    shapes("ask", "ask", "What does a dog travel for?", "--receipt", "receipt.json")
    shapes("ask no evidence", "ask", "Who invented the telephone?")
    shapes.lines("ask --stream", "ask", "What does a dog travel for?", "--stream")
    shapes.seen["receipt file"] = steady(json.loads(Path("receipt.json").read_text()), tmp_path)
    shapes("verify --receipt", "verify", "--receipt", "receipt.json")
    shapes("verify", "verify", "The lighthouse was painted in 1931 and a dog travels for three crowns.")
    Path("notes.md").write_text("# Notes\n\nThe lighthouse was painted in 1942.\n")
    shapes("check", "check", "notes.md")
    shapes("research", "research", "dogs on the ferry", "--depth", "quick")
    shapes("explain", "explain", "dogs", "--document", _document(shapes, "fares.md"))
    shapes("error", "explain", "dogs", "--document", "nothing")
    shapes("error of usage", "search")
    check_golden("cli_questions", shapes.seen)


def test_documents(shapes: Shapes, pages: Path) -> None:
    first, second = _document(shapes, "fares.md"), _document(shapes, "harbour.txt")
    assert len(shapes("documents", "documents", "--limit", "1").pop("documents")) == 1
    shapes.seen["documents"]["documents"] = []
    shapes("documents show", "documents", "show", first)
    shapes("documents chunks", "documents", "chunks", first)
    shapes("documents delete", "documents", "delete", first, "unknown")
    shapes("documents delete --receipt", "documents", "delete", second, "unknown", "--receipt")
    shapes("ingest --dry-run", "ingest", pages, "--dry-run")
    (pages / "broken.pdf").write_bytes(b"%PDF-1.4 no")
    shapes("ingest", "ingest", pages)
    (pages / "new.txt").write_text("A crossing takes an hour.")
    queued = shapes("ingest --queue", "ingest", pages / "new.txt", "--queue")
    shapes("documents show pending", "documents", "show", queued["queued"][0]["document_id"])
    shapes("worker", "worker", "--until-idle")
    check_golden("cli_documents", shapes.seen)


def test_jobs_and_sources(nothing: Shapes, pages: Path) -> None:
    shapes = nothing
    shapes("sources kinds", "sources", "kinds")
    shapes.seen["sources kinds"]["kinds"] = shapes.seen["sources kinds"]["kinds"][:2]
    shapes("sources add", "sources", "add", "files", "wiki", f"path={pages}", "--schedule", "daily")
    shapes("sources list", "sources", "list")
    queued = shapes("sources sync --no-wait", "sources", "sync", "wiki", "--no-wait")["jobs"][0]["id"]
    shapes("jobs cancel", "jobs", "cancel", queued, "unknown")
    shapes("jobs retry", "jobs", "retry", queued, "unknown")
    (pages / "broken.pdf").write_bytes(b"%PDF-1.4 no")
    shapes("sources sync", "sources", "sync", "wiki")
    shapes("sources show", "sources", "show", "wiki")
    shapes("sources pause", "sources", "pause", "wiki")
    shapes("sources resume", "sources", "resume", "wiki")
    shapes("jobs", "jobs", "--state", "failed")
    shapes("jobs show", "jobs", "show", queued)
    shapes("jobs notices", "jobs", "notices")
    shapes("sources remove", "sources", "remove", "wiki", "--yes")
    check_golden("cli_jobs_and_sources", shapes.seen)


def test_knowledge_bases(shapes: Shapes, tmp_path: Path) -> None:
    shapes("kb list", "kb", "list")
    shapes("kb collections", "kb", "collections")
    shapes("stats", "stats")
    shapes("kb reindex", "kb", "reindex", "default")
    shapes("kb resync", "kb", "resync", "default", "--yes")
    shapes("kb rename", "kb", "rename", "default", "harbour")
    shapes("kb delete", "kb", "delete", "harbour", "--yes")
    Path("corpus.txt").write_text("The dragon sleeps under the mill. The miller pays in barley.")
    shapes("corpus show nothing", "corpus", "show")
    shapes("corpus build", "corpus", "build", "corpus.txt")
    shapes("corpus show", "corpus", "show")
    found = shapes("search", "search", "dragon", "--kb", "corpus_embeddings")
    shapes("corpus chunk", "corpus", "chunk", found["hits"][0]["chunk_id"])
    check_golden("cli_knowledge_bases", shapes.seen)


def test_tenants(shapes: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes("tenants create", "tenants", "create", "acme")
    shapes("tenants set", "tenants", "set", "acme", "quotas.documents=5", "retention_days=9", "retrieval.k=3")
    shapes("tenants", "tenants")
    shapes("tenants show", "tenants", "show", "default")
    shapes("usage", "usage")
    own = shapes("keys create", "keys", "create", "--tenant", "acme", "--scope", "read,write", "--days", "9")["id"]
    shapes("keys", "keys")
    own = shapes("keys rotate", "keys", "rotate", own)["id"]
    shapes("keys revoke", "keys", "revoke", own)
    shapes("tenants rename", "tenants", "rename", "acme", "apex")
    shapes("tenants suspend", "tenants", "suspend", "apex")
    shapes("tenants resume", "tenants", "resume", "apex")
    shapes("tenants delete", "tenants", "delete", "apex", "--yes")
    shapes("audit", "audit", "--limit", "3")
    shapes("audit --verify", "audit", "--verify")
    shapes("alerts", "alerts")
    key = shapes("keys encryption", "keys", "encryption")["key"]
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", key)
    shapes("keys rotate-encryption", "keys", "rotate-encryption")
    check_golden("cli_tenants", shapes.seen)


def test_activity(shapes: Shapes) -> None:
    hits = shapes("search", "search", "What does a dog pay?", "--conversation", "c1")["hits"]
    shapes("ask", "ask", "What does a dog travel for?", "--conversation", "c1")
    shapes("conversations", "conversations")
    shapes("conversations show", "conversations", "show", "c1")
    shapes("conversations forget", "conversations", "forget", "c1")
    shapes("feedback add", "feedback", "add", "What does a dog pay?", hits[0]["chunk_id"], "--vote", "up")
    shapes("feedback list", "feedback", "list")
    shapes("feedback searches", "feedback", "searches", "--limit", "1")
    shapes("feedback report", "feedback", "report")
    shapes("feedback dictionary", "feedback", "dictionary")
    shapes("golden add", "golden", "add", "What does a dog pay?", hits[0]["document_id"])
    shapes("golden", "golden")
    (made,) = shapes("golden make", "golden", "make", "--count", "1")["golden"]
    shapes.seen["golden make"]["golden"] = [{**made, "query": "<text>", "document_ids": ["<id>"]}]
    shapes("golden remove", "golden", "remove", "--all")
    shapes("gaps", "gaps")
    check_golden("cli_activity", shapes.seen)


def test_service(shapes: Shapes) -> None:
    shapes("agent show", "agent", "show")
    shapes("agent set", "agent", "set", "citation_style=endnote", "agent_cannot_do=Talk about politics.")
    shapes("chat", "chat", "What does a dog travel for?", "--conversation", "c1")
    shapes("chat declined", "chat", "Which politician do you like?", "--conversation", "c1")
    shapes("agent analytics", "agent", "analytics", "--svg", "chart.svg")
    assert Path("chart.svg").read_text().startswith("<svg ")
    check_golden("cli_service", shapes.seen)


def test_shop(nothing: Shapes) -> None:
    shapes = nothing
    tea = ("Green tea", "--id", "tea", "--category", "Tea", "--price", "4.5", "--stock", "3")
    shapes("shop put-product", "shop", "put-product", *tea)
    hours = ("--hours", "mon-sun 09:00-12:00", "--timezone", "Europe/Berlin", "--price", "80")
    shapes("shop put-service", "shop", "put-service", "Massage", "--id", "massage", *hours)
    shapes("shop products", "shop", "products")
    shapes("shop products found", "shop", "products", "green teas")
    shapes("shop product", "shop", "product", "tea")
    shapes("shop services", "shop", "services")
    shapes("shop service", "shop", "service", "massage")
    slots = shapes("shop slots", "shop", "slots", "massage", "--from", "2031-03-29", "--to", "2031-03-30")["slots"]
    made = shapes("shop book", "shop", "book", "massage", slots[0]["local_start"], "--customer", "Ada")
    shapes("shop appointments", "shop", "appointments", "--service", "massage")
    shapes("shop cancel", "shop", "cancel", made["id"])
    Path("table.csv").write_text("name,price\nSoap,2\n")
    shapes("shop import", "shop", "import", "table.csv")
    shapes("shop remove", "shop", "remove", "product", "tea")
    check_golden("cli_shop", shapes.seen)


def test_moves(shapes: Shapes) -> None:
    shapes("export", "export", "x.zip")
    shapes("import", "import", "x.zip", "--data-dir", "elsewhere")
    shapes("migrate", "migrate", "--to", "memory")
    check_golden("cli_moves", shapes.seen)


def test_embeddings(shapes: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(chosen: EmbeddingSettings) -> FakeEmbedder:
        return FakeEmbedder() if "/" not in chosen.model else FakeEmbedder(name=chosen.model)

    monkeypatch.setattr("ragstone.engine.components.build_embedder", build)
    shapes("reembed", "reembed", "--model", "a/new")
    shapes("reembed --spaces", "reembed", "--spaces")
    shapes("reembed --rollback", "reembed", "--rollback")
    shapes("reembed --cleanup", "reembed", "--cleanup")
    shapes("reembed --refresh", "reembed", "--refresh")
    shapes("reembed --status", "reembed", "--status")
    check_golden("cli_embeddings", shapes.seen)


def test_evaluation(nothing: Shapes, tmp_path: Path) -> None:
    folder = tmp_path / "stones"
    (folder / "qrels").mkdir(parents=True)
    names = [f"stone{number:02}" for number in range(24)]
    corpus = [{"_id": name, "title": "", "text": f"{name} lies in the quarry"} for name in names]
    queries = [{"_id": name, "text": f"where does {name} lie"} for name in names]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    judged = "\n".join(f"{name}\t{name}\t1" for name in names)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    lexical = tmp_path / "lexical.yaml"
    lexical.write_text("retrieval: {arms: lexical}")
    nothing("eval", "eval", folder, "--systems", "lexical,dense")
    nothing("tune", "tune", folder, "--config", lexical, "--budget-ms", "60000")
    check_golden("cli_evaluation", nothing.seen)


def test_installation(shapes: Shapes) -> None:
    shapes("models", "models")
    checks = shapes("doctor", "doctor")
    shapes.seen["doctor"] = {**shapes.seen["doctor"], "checks": shapes.seen["doctor"]["checks"][:2]}
    assert checks["ok"] is True
    shapes("demo", "demo")
    check_golden("cli_installation", shapes.seen)


def test_article(shapes: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = "# Fares\n\nA single crossing costs six crowns. A dog travels for two crowns.\n"
    with newsroom(dict.fromkeys(("writer", "editor", "style_enforce"), draft) | {"critic": "Short."}) as double:
        monkeypatch.setenv("RAGSTONE_LLM__BASE_URL", double.url)
        monkeypatch.setenv("RAGSTONE_LLM__MODEL", "m")
        shapes("article", "article", "Fares of the crossing")
    for step in shapes.seen["article"]["article"]["steps"]:
        step["seconds"] = 0.0
    check_golden("cli_article", shapes.seen)


def test_config(nothing: Shapes) -> None:
    printed = nothing("config", "config")
    assert {"profile", "retrieval", "store"} <= set(printed)


def test_every_command_is_pinned() -> None:
    pinned = {name for file in FOLDER.glob("cli_*.json") for name in json.loads(file.read_text())}
    # `serve` goes on, `mcp` speaks its own protocol, `models pull` needs the network, and settings may grow.
    unpinned = {"serve", "mcp", "models pull", "config"}
    commands = set(_commands(typer.main.get_command(app))) - unpinned
    # A group such as `jobs` lists by itself what `jobs list` lists.
    assert {name for name in commands if not {name, name.removesuffix(" list")} & pinned} == set()


def test_only_schemas_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    write_json(ErrorSchema.of_words("usage", "what?"))
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"
    with pytest.raises(AttributeError):
        write_json({"error": "what?"})  # type: ignore[arg-type]


def _commands(command: Any, path: str = "") -> list[str]:
    if not hasattr(command, "commands"):
        return [path]
    below = [_commands(inner, f"{path} {name}".strip()) for name, inner in command.commands.items()]
    return [name for names in below for name in names]
