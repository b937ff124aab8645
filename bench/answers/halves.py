"""The tables of one half of the collection: questions, claims, statements and payloads."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from collections.abc import Collection as Names
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from bench.answers.baselines import build_baselines
from bench.answers.collection import Collection, Half, load_collection
from bench.answers.doubles import QuotingLLM
from bench.answers.knowledge import ingest_pages, open_knowledge
from bench.answers.measure import (
    measure_claims,
    measure_payloads,
    measure_questions,
    measure_statements,
    read_by_asking,
)
from bench.answers.payloads import make_payloads
from bench.answers.tables import Table
from ragstone.engine.engine import Engine


def measure_halves(
    halves: Sequence[Half], parts: Names[str], kept: Path | None, *, quick: bool
) -> dict[Half, list[Table]]:
    """Return the tables of each half, measured at the same time: one half keeps little more than one core busy."""
    one = partial(measure_half, parts=parts, kept=kept, quick=quick)
    if len(halves) == 1:
        return {half: one(half) for half in halves}
    with ProcessPoolExecutor(len(halves), multiprocessing.get_context("spawn")) as pool:
        return dict(zip(halves, pool.map(one, halves), strict=True))


def measure_half(half: Half, parts: Names[str], kept: Path | None, *, quick: bool) -> list[Table]:
    """Return the tables of one half; quickly, without baselines and without a double of an LLM."""
    return asyncio.run(_measure(load_collection(half), parts, kept, quick=quick))


async def _measure(collection: Collection, parts: Names[str], kept: Path | None, *, quick: bool) -> list[Table]:
    tables: list[Table] = []
    if {"questions", "claims"} & set(parts):
        async with ingest_pages(collection.pages, kept) as data:
            tables += await _measure_pages(collection, data, parts, quick=quick)
    if {"statements", "payloads"} & set(parts):
        async with ingest_pages(collection.prose, kept) as data, open_knowledge(data) as components:
            if "statements" in parts:
                workspace = Engine(components).workspace("default")
                tables += await measure_statements(collection.statements, components, workspace)
            if "payloads" in parts:
                planted = [*collection.planted, *make_payloads(collection.statements)]
                tables.append(await measure_payloads(planted, components))
    return tables


async def _measure_pages(collection: Collection, data: Path, parts: Names[str], *, quick: bool) -> list[Table]:
    tables: list[Table] = []
    async with open_knowledge(data) as components:
        workspace = Engine(components).workspace("default")
        if "questions" in parts:
            say("asking")
            tables.append(await measure_questions("questions", collection.questions, read_by_asking(workspace)))
        if "claims" in parts:
            say("checking claims")
            tables += await measure_claims(collection.claims, workspace)
        if "questions" in parts and not quick:
            for name, read in build_baselines(components).items():
                say(name)
                tables.append(await measure_questions(name, collection.questions, read))
    if "questions" in parts and not quick:
        say("asking with a double of an LLM")
        async with open_knowledge(data, QuotingLLM()) as components:
            read = read_by_asking(Engine(components).workspace("default"))
            tables.append(await measure_questions("with a double of an LLM", collection.questions, read))
    return tables


def say(what: str) -> None:
    """Tell what is done now."""
    print(f"{what} …", file=sys.stderr, flush=True)
