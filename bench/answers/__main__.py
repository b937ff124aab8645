"""`python -m bench.answers [HALF|ablation|reader|fit]`: what is said to questions, claims and statements."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.faults import current_commit

from bench.answers.ablation import measure_ablation
from bench.answers.collection import HALVES, READ, Collection, Half, load_collection
from bench.answers.fit import FILE as WEIGHTS
from bench.answers.fit import fit_weights
from bench.answers.halves import measure_halves, say
from bench.answers.knowledge import ingest_pages
from bench.answers.page import render_page
from bench.answers.speed import measure_speed
from bench.answers.tables import Table, are_met
from bench.report import Row

PARTS = ("questions", "claims", "statements", "payloads", "speed")
PAGE = Path("docs/answers.md")
SCIFACT = Path("../shared/data/scifact")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and return 1 if a goal is missed; both halves as a whole are written to the page."""
    options = _parse(arguments)
    if options.half == "ablation":
        print("\n".join(measure_ablation(options.data_dir, options.data, every=options.every, by_rule=options.rules)))
        return 0
    if options.half == "reader":
        from bench.answers.reader import train_reader  # needs torch, which nothing else here does

        asyncio.run(train_reader(options.data_dir, options.again))
        return 0
    if options.half == "fit":
        figures, weights = asyncio.run(fit_weights(options.data_dir))
        print("\n".join(figures))
        WEIGHTS.write_text(weights, encoding="utf-8")
        return 0
    parts: Sequence[str] = [options.only] if options.only else PARTS
    halves: Sequence[Half] = [options.half] if options.half else HALVES
    tables = measure_halves(halves, parts, options.data_dir, quick=options.quick)
    speed = asyncio.run(time_questions(load_collection("develop"), options.data_dir)) if "speed" in parts else []
    if options.json:
        counts = {half: {table.name: table.as_dict() for table in found} for half, found in tables.items()}
        timed = {"speed": [row.as_dict() for row in speed]} if speed else {}
        print(json.dumps({**counts, **timed}, ensure_ascii=False, indent=1))
    else:
        page = render_page(tables, speed, current_commit())
        print(page)
        if len(halves) > 1 and not options.only and not options.quick:
            PAGE.write_text(page, encoding="utf-8")
    if options.failures:
        print("\n".join(_render_failures(tables["develop"])))
    return 0 if all(map(are_met, tables.values())) and all(row.met is not False for row in speed) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.answers")
    parser.add_argument(
        "half", nargs="?", choices=(*HALVES, "further", *READ, "ablation", "reader", "fit"), help="default: both halves"
    )
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    parser.add_argument("--quick", action="store_true", help="neither baselines nor a double of an LLM")
    parser.add_argument("--data-dir", type=Path, help="where to keep what was ingested; default: a temporary folder")
    parser.add_argument("--again", action="store_true", help="reader: go on from the weights that are there")
    parser.add_argument("--failures", action="store_true", help="list what failed, with what was said; develop only")
    parser.add_argument("--json", action="store_true", help="print counts as JSON")
    parser.add_argument("--data", type=Path, default=SCIFACT, help="ablation: the folder of SciFact")
    parser.add_argument("--rules", action="store_true", help="ablation: switch off each rule, too, not only each file")
    parser.add_argument("--every", type=int, default=1, help="ablation: take every so many of the items")
    options = parser.parse_args(arguments)
    if options.failures and options.half != "develop":
        parser.error("--failures shows texts, and those of the measured half are not to be seen: name `develop`")
    return options


async def time_questions(collection: Collection, kept: Path | None) -> Sequence[Row]:
    """Return how long the questions of a half take when its knowledge base is filled up."""
    say("timing questions on 10,000 chunks")
    async with ingest_pages(collection.pages, kept) as data:
        return await measure_speed(data, collection.questions)


def _render_failures(tables: Sequence[Table]) -> Iterator[str]:
    for table in tables:
        for failure in table.failures:
            yield f"\n[{table.name}] {failure.id} ({failure.kind})\n  asked:    {failure.asked!r}"
            yield f"  expected: {failure.expected!r}\n  said:     {failure.said!r}"


if __name__ == "__main__":
    raise SystemExit(main())
