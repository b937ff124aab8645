"""The page about answers: the goals, every way of answering, and the counts by kind, for each half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.answers.collection import Half
from bench.answers.tables import GRADED, Table, is_answerable, is_unanswerable, render_goals
from bench.report import Row, machine

_MARKS = {True: "met", False: "**missed**", None: ""}
INTRODUCTION = """\
# Answers and verdicts, measured

Written by `make answers`. The collection in `bench/answers` has questions and claims about pages of real manuals, and
altered statements and true paraphrases about documents of prose. Its two halves share no manual: the code was developed
on one half, and the other one is only ever measured.

An answer is right when it holds every asked fact, partly right when a question of two parts gets one of them, refused
when Ragstone says that no passage states it, and wrong otherwise. A statement is said when a language model that makes
it, citing its passage, gets it into an answer; a payload comes out when a model that adds it to a true sentence does.
The default settings and the default local model are used, and no entailment model.
"""
SYSTEMS = """\
Every way of answering on the same questions. The double of a language model replies with the sentence of the passages
that shares most words with the question; the baselines say what they choose from the hits of the same search, and never
refuse. LlamaIndex has a row where `make peers` has installed it; the extractive reader of Haystack needs a model that
no package brings.
"""


def render_page(halves: Mapping[Half, Sequence[Table]], speed: Sequence[Row], commit: str) -> str:
    """Return the page about what was measured."""
    lines = [INTRODUCTION, f"**Machine:** {machine()}. Commit {commit}.\n", *_render_speed(speed)]
    for half, tables in halves.items():
        lines += render_half(half, tables)
    return "\n".join(lines) + "\n"


def render_half(half: Half, tables: Sequence[Table]) -> Iterator[str]:
    """Yield the goals and the tables of one half."""
    yield f"\n## {half.capitalize()}\n"
    yield from render_goals(tables)
    graded = [table for table in tables if table.labels == GRADED and table.items]
    if len(graded) > 1:
        yield f"\n{SYSTEMS}"
        yield "| | right | partly | wrong | refused | unanswerable refused |\n|---|---|---|---|---|---|"
        yield from map(_render_system, graded)
    for table in tables:
        if table.items and (table.labels != GRADED or table in graded[:1] or "LLM" in table.name):
            yield ""
            yield from table.render()


def _render_system(table: Table) -> str:
    size, unanswerable = table.size(is_answerable), table.size(is_unanswerable)
    shares = [f"{table.count(label, is_answerable) / max(1, size):.1%}" for label in GRADED]
    refused = f"{table.count('refused', is_unanswerable)} of {unanswerable}"
    return f"| {table.name} | {' | '.join(shares)} | {refused} |"


def _render_speed(rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield "| Speed | Measured | Goal | |\n|---|---|---|---|"
        for row in rows:
            yield f"| {row.what}, {row.part} | **{row.value}** | {row.target} | {_MARKS[row.met]} |"
