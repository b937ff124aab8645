"""`ragstone doctor`: is everything here that is needed, and what to type when it is not."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.health import Finding
from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.output import text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.types import Json
    from ragstone.settings.tree import Settings

State = Literal["ok", "warn", "fail"]
COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}
LITTLE_MB, TOO_LITTLE_MB = 1024, 64
EXTRAS = {
    "llm": (("openai",), "answers written by an LLM, remote embeddings"),
    "onnx": (("onnx", "onnxruntime"), "local models where OpenVINO does not run"),
    "hub": (("huggingface_hub",), "getting models with `ragstone models pull`"),
    "tables": (("pdfplumber",), "tables in PDF files"),
    "ocr": (("rapidocr", "onnxruntime"), "pictures and scanned pages"),
    "code": (
        (
            "tree_sitter",
            "tree_sitter_go",
            "tree_sitter_java",
            "tree_sitter_javascript",
            "tree_sitter_python",
            "tree_sitter_rust",
            "tree_sitter_typescript",
        ),
        "source code cut at functions and classes",
    ),
    "postgres": (("psycopg",), "a ledger in PostgreSQL"),
    "chroma": (("chromadb",), "vectors in Chroma"),
    "qdrant": (("qdrant_client",), "vectors in Qdrant"),
    "milvus": (("pymilvus", "milvus_lite"), "vectors in Milvus"),
    "agents": (("langchain_core", "langgraph"), "tools for LangChain and LangGraph"),
    "mcp": (("mcp",), "`ragstone mcp`"),
}
PROGRAMS = {
    "git": ("git", "sources of kind git"),
    "tesseract": ("tesseract-ocr", "pictures and scanned pages, in place of the extra ocr"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `fix` is what to type."""

    name: str
    state: State
    detail: str
    fix: str = ""


async def doctor(
    session: Session,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Repair the stores; live content is not changed."),
    ] = False,
    forget_store: Annotated[
        str,
        typer.Option(
            "--forget-store",
            metavar="NAME",
            help="With --repair: a vector database that is not in use any more and was emptied by hand.",
        ),
    ] = "",
) -> int:
    """Check the installation and the stores.

    Looks at the installation, the model, the data folder and the stores, and says what to type when something is
    missing.
    """
    if forget_store and not repair:
        raise InputError("--forget-store changes what is known of a store", hint="give --repair as well")
    async with session.patience("checking …"):
        checks = [check async for check in _checks(session)]
        stores = await check_stores(session, repair=repair, forget=forget_store)
    failed = "fail" in {check.state for check in checks} | {finding.state for finding in stores}
    session.show(
        {
            "ok": not failed,
            "checks": [asdict(check) for check in checks],
            "stores": [_finding_json(finding) for finding in stores],
        },
        lambda out: _draw(out, [*checks, *map(_as_check, stores)]),
    )
    return FAILURE if failed else OK


async def _checks(session: Session) -> AsyncIterator[Check]:
    from ragstone.settings.tree import Settings

    yield check_python()
    yield check_sqlite()
    settings = Settings()
    try:
        settings = session.settings()
        yield Check("settings", "ok", f"profile {settings.profile}")
    except RagstoneError as error:
        yield Check("settings", "fail", str(error), error.advice)
    yield check_runtime(settings)
    yield await check_model(settings)
    yield check_data_folder(settings.data_dir)
    yield check_space(settings.data_dir)
    for extra in EXTRAS:
        yield check_extra(extra, settings)
    for program in PROGRAMS:
        yield check_program(program)


def check_python() -> Check:
    """Which Python runs this; an older one than is needed cannot install it."""
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def check_sqlite() -> Check:
    """SQLite must have its full-text index."""
    import sqlite3

    try:
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        database.close()
    except sqlite3.OperationalError:
        return Check(
            "sqlite", "fail", f"{sqlite3.sqlite_version} without FTS5", "use a Python whose sqlite3 has FTS5"
        )
    return Check("sqlite", "ok", f"{sqlite3.sqlite_version} with FTS5")


def check_runtime(settings: Settings) -> Check:
    """What would run local models."""
    from importlib import metadata

    wanted = settings.embedding.runtime
    if wanted in ("auto", "openvino") and find_spec("openvino"):
        return Check("runtime", "ok", f"openvino {metadata.version('openvino')}")
    if wanted in ("auto", "onnxruntime") and find_spec("onnxruntime") and find_spec("onnx"):
        return Check("runtime", "ok", f"onnxruntime {metadata.version('onnxruntime')}")
    fix = 'pip install "ragstone[onnx]"' if wanted == "onnxruntime" else "pip install openvino"
    return Check("runtime", "fail", f"{wanted}: not installed", fix)


async def check_model(settings: Settings) -> Check:
    """The embedding model's weights are here, are what was published, and give a vector."""
    from ragstone.models import build_embedder
    from ragstone.serve.cli.models import is_remote, verify_weights

    if is_remote(settings.embedding):
        return Check("model", "ok", f"{settings.embedding.model} is remote and was not called")
    try:
        verify_weights(settings.embedding)
        embedder = build_embedder(settings.embedding)
        try:
            made = await embedder.embed(["a sentence to try it"], "query")
        finally:
            await embedder.close()
    except RagstoneError as error:
        return Check("model", "fail", str(error), error.advice)
    return Check("model", "ok", f"{made.model}, {made.vectors.shape[1]} dimensions, weights verified")


def check_data_folder(folder: Path) -> Check:
    """The data folder can be written, or made."""
    there = _existing(folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Check("data folder", "fail", f"{folder} cannot be written", "name another one with --data-dir")
    return Check("data folder", "ok", f"{folder}{'' if folder.exists() else ' (not there yet)'}")


def check_space(folder: Path) -> Check:
    """There is room for data."""
    free_mb = shutil.disk_usage(_existing(folder)).free // (1024 * 1024)
    state: State = "fail" if free_mb < TOO_LITTLE_MB else "warn" if free_mb < LITTLE_MB else "ok"
    detail = f"{free_mb / 1024:.1f} GB free"
    return Check("free space", state, detail, "" if state == "ok" else "make room, or use another --data-dir")


def check_extra(extra: str, settings: Settings) -> Check:
    """An optional part: missing is a remark, unless the settings need it."""
    name, purpose = f"extra {extra}", EXTRAS[extra][1]
    if _installed(extra):
        return Check(name, "ok", "installed")
    needed = extra == "llm" and settings.llm.model is not None
    state: State = "fail" if needed else "warn"
    return Check(name, state, f"not installed; for {purpose}", f'pip install "ragstone[{extra}]"')


def check_program(program: str) -> Check:
    """A program that some things need and most do not."""
    name, (package, purpose) = f"program {program}", PROGRAMS[program]
    if found := shutil.which(program):
        return Check(name, "ok", found)
    if program == "tesseract" and _installed("ocr"):
        return Check(name, "ok", "not installed; the extra ocr does its work")
    return Check(name, "warn", f"not installed; for {purpose}", f"apt install {package}")


async def check_stores(session: Session, *, repair: bool, forget: str = "") -> list[Finding]:
    """Every store that the settings name: reachable, complete, and free of what nobody needs."""
    import asyncio

    from ragstone.stores.factory import open_stores
    from ragstone.stores.health.check import examine
    from ragstone.wiring import secret_keys

    try:
        settings = session.settings()
    except RagstoneError:
        return []  # said already
    if settings.store.ledger.kind == "sqlite" and not settings.data_dir.exists():
        return [Finding("ledger", "reachable", "ok", "nothing has been written yet")]
    try:
        stores = await asyncio.to_thread(open_stores, settings, secret_keys)
    except RagstoneError as error:
        return [Finding("stores", "opened", "fail", str(error), error.hint, remedy=error.remedy)]
    try:
        return await examine(stores, repair=repair, forget=forget)
    finally:
        await stores.close()


def _installed(extra: str) -> bool:
    return all(find_spec(module) for module in EXTRAS[extra][0])


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())


def _draw(out: Console, checks: list[Check]) -> None:
    from rich.table import Table

    rows = Table.grid(padding=(0, 2, 0, 0))
    for check in checks:
        rows.add_row(text(check.state, COLOURS[check.state]), check.name, text(check.detail))
        if check.fix:
            rows.add_row("", "", text(check.fix, "cyan"))
    out.print(rows)


def _as_check(finding: Finding) -> Check:
    return Check(f"{finding.store} {finding.what}", finding.state, finding.detail, finding.advice)


def _finding_json(finding: Finding) -> dict[str, Json]:
    return {
        "store": finding.store,
        "what": finding.what,
        "state": finding.state,
        "detail": finding.detail,
        "repair": finding.advice,
        "repaired": finding.repaired,
    }
