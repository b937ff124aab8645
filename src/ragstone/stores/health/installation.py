"""Checks of the machine: Python, SQLite, the data folder, optional packages and programs."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from ragstone.core.health import Check, FindingState
from ragstone.settings.tree import Settings

LITTLE_MB, TOO_LITTLE_MB = 1024, 64
EXTRAS = {
    "llm": (("openai",), "answers written by an LLM, remote embeddings"),
    "onnx": (("onnx", "onnxruntime"), "local models where OpenVINO does not run"),
    "hub": (("huggingface_hub",), "downloading models"),
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
    "redis": (("redis",), "search results that processes share"),
    "agents": (("langchain_core", "langgraph"), "tools for LangChain and LangGraph"),
    "mcp": (("mcp",), "tools over the Model Context Protocol"),
    "oidc": (("jwt",), "tokens of an identity provider in place of API keys"),
    "telemetry": (
        ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
        "traces for a collector of OpenTelemetry",
    ),
}
PROGRAMS = {
    "git": ("git", "sources of kind git"),
    "tesseract": ("tesseract-ocr", "pictures and scanned pages, in place of the extra ocr"),
}


def check_storage(settings: Settings) -> Iterator[Check]:
    """Check the data folder and the room on its disk."""
    yield check_data_folder(settings.data_dir)
    yield check_space(settings.data_dir)


def check_packages(settings: Settings) -> Iterator[Check]:
    """Check the optional packages and programs."""
    for extra in EXTRAS:
        yield check_extra(extra, settings)
    for program in PROGRAMS:
        yield check_program(program)


def check_python() -> Check:
    """Name the Python that runs this; an older one than is needed cannot install it."""
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def check_sqlite() -> Check:
    """Check that SQLite has its full-text index."""
    try:
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        database.close()
    except sqlite3.OperationalError:
        return Check("sqlite", "fail", f"{sqlite3.sqlite_version} without FTS5", "use a Python whose sqlite3 has FTS5")
    return Check("sqlite", "ok", f"{sqlite3.sqlite_version} with FTS5")


def check_data_folder(folder: Path) -> Check:
    """Check that the data folder can be written, or made."""
    there = _existing(folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Check("data folder", "fail", f"{folder} cannot be written", "set data_dir to another one")
    return Check("data folder", "ok", f"{folder}{'' if folder.exists() else ' (not there yet)'}")


def check_space(folder: Path) -> Check:
    """Check that there is room for data."""
    free_mb = shutil.disk_usage(_existing(folder)).free // (1024 * 1024)
    state: FindingState = "fail" if free_mb < TOO_LITTLE_MB else "warn" if free_mb < LITTLE_MB else "ok"
    detail = f"{free_mb / 1024:.1f} GB free"
    return Check("free space", state, detail, "" if state == "ok" else "make room, or set data_dir to another folder")


def check_extra(extra: str, settings: Settings) -> Check:
    """Check an optional part: a missing one is a warning, unless the settings need it."""
    name, purpose = f"extra {extra}", EXTRAS[extra][1]
    if _has_modules(extra):
        return Check(name, "ok", "installed")
    needed = extra == "llm" and settings.llm.model is not None
    state: FindingState = "fail" if needed else "warn"
    return Check(name, state, f"not installed; for {purpose}", f'pip install "ragstone[{extra}]"')


def check_program(program: str) -> Check:
    """Check a program that some sources and files need."""
    name, (package, purpose) = f"program {program}", PROGRAMS[program]
    if found := shutil.which(program):
        return Check(name, "ok", found)
    if program == "tesseract" and _has_modules("ocr"):
        return Check(name, "ok", "not installed; the extra ocr does its work")
    return Check(name, "warn", f"not installed; for {purpose}", f"apt install {package}")


def _has_modules(extra: str) -> bool:
    return all(_is_installed(module) for module in EXTRAS[extra][0])


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package around it
        return False


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    return next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
