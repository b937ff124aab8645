"""The page about the profiles, made from their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bench.profiles.record import Record
from ragstone.evaluate.report import Judgement
from ragstone.settings.load import load_settings

REQUIREMENTS = {
    "ghostwriter": {
        "p95_ms": "R-EVL-01",
        "recall@10": "R-EVL-02",
        "p@5": "R-EVL-03",
        "mrr@10": "R-EVL-04",
        "ndcg@10": "R-EVL-05",
        "ingest.success": "R-EVL-06",
        "ingest.minutes": "R-EVL-07",
        "chunks.readable": "R-EVL-08",
        "embedding.errors": "R-EVL-09",
    },
    "kosmos": {
        "p50_ms": "R-EVL-10",
        "p99_ms": "R-EVL-11",
        "ingest.ms_per_document": "R-EVL-12",
        "rerank.p95_ms": "R-EVL-13",
        "recall@10": "R-EVL-14",
        "mrr@10": "R-EVL-15",
    },
    "tulia": {"p95_ms": "R-EVL-16"},
    "takaro": {"fast.p95_ms": "R-EVL-17", "balanced.p95_ms": "R-EVL-17", "thorough.p95_ms": "R-EVL-17"},
    "rpg": {"p95_ms": "R-EVL-18", "ingest.minutes_per_10k_chunks": "R-EVL-19", "memory_mb": "R-EVL-20"},
}
SYSTEMS = ("lexical", "dense", "hybrid", "fast", "balanced", "thorough")
SHOWN = ("hit@1", "hit@5", "recall@10", "p@5", "mrr@10", "ndcg@10", "p50_ms", "p95_ms", "cpu.p95_ms")
INTRODUCTION = """\
# The five profiles, measured

Written by `make profiles`, which measures every profile on the store that it names, with its own kind of models. The
figures are in [records.json](profiles/records.json), with hashes of the profile's file and of the data. Where a model
must be paid for or cannot be had without a network, a local one stands in for it, and the profile's section says so.

**Data.** 91 labelled questions about the pages of a product's documentation (`bench/takaro`, folder `takaro-docs`),
for all profiles; a page is ranked by its best passage. `p@5` counts pages: most questions have one or two pages that
answer them, so it cannot come near 0.9. `passages.p@5` is the share of the first five passages that come from such a
page. Where a design asks for 10,000 chunks, as many of synthetic text, embedded with the real model (`10k.…`).

**Figures.** `p50_ms`, `p95_ms`, `p99_ms`, `hit@1` … are those of the profile's own mode; `fast.p95_ms` or `dense.hit@5`
those of another way to search; `rerank.p95_ms` is the time of one stage. `ingest.…`, `chunks`, `documents`,
`chunks.readable`, `embedding.errors` and `memory_mb` (the peak of the process) belong to the ingest. Each search asks
for ten results, comes from no cache, and is not cut off when it takes too long. `cpu.p95_ms` is processor time of this
process alone: on a machine that other work keeps busy it says more than `p95_ms`, which includes the waiting.
"""


def judge(record: Record) -> Iterator[tuple[str, Judgement]]:
    """Yield the requirement and the judgement of each of a profile's targets; 10,000 chunks count where there are."""
    settings = load_settings(overrides={"profile": record.profile}, environment={})
    for name, target in settings.targets.items():
        measured = record.figures.get(f"10k.{name}", record.figures.get(name))
        yield REQUIREMENTS[record.profile].get(name, ""), Judgement(name, target, measured)


def render_page(records: Iterable[Record]) -> str:
    """Return the page about all profiles that were measured."""
    return "\n".join([INTRODUCTION, *(line for record in records for line in _render_profile(record))])


def _render_profile(record: Record) -> Iterator[str]:
    made = record.made
    yield f"## {record.profile}\n"
    yield f"- Store: {', '.join(f'{part} {kind}' for part, kind in record.store.items() if kind)}"
    yield f"- Models: {', '.join(f'{part} {model}' for part, model in record.models.items())}"
    yield "- Stand-ins: " + ("; ".join(record.stand_ins) or "none")
    if record.degraded:
        yield f"- Stages that some searches skipped: {', '.join(record.degraded)}"
    yield f"- Machine: {made['machine']}; load {made['load']} when it began (1 for each busy core)"
    yield f"- Commit {made['commit']}, {made['date']}, {made['minutes']} minutes\n"
    yield "| Target | Bound | Measured | | Requirement |\n|---|---|---|---|---|"
    for requirement, judgement in judge(record):
        measured = "–" if judgement.measured is None else f"{judgement.measured:,.3f}"
        verdict = "met" if judgement.verdict == "met" else f"**{judgement.verdict}**"
        yield f"| `{judgement.name}` | {judgement.target} | {measured} | {verdict} | {requirement} |"
    yield ""
    yield f"| | {' | '.join(SHOWN)} |\n|---|{'---|' * len(SHOWN)}"
    for system in SYSTEMS:
        yield f"| {system} | {' | '.join(_show(record.figures, f'{system}.{name}') for name in SHOWN)} |"
    yield ""
    yield _gain(record.figures)


def _show(figures: Mapping[str, float], name: str) -> str:
    if name not in figures:
        return "–"
    return f"{figures[name]:.0f}" if name.endswith("_ms") else f"{figures[name]:.3f}"


def _gain(figures: Mapping[str, float]) -> str:
    gains = (
        f"{metric} {figures[f'hybrid.{metric}'] / figures[f'dense.{metric}'] - 1:+.1%}"
        for metric in ("hit@1", "hit@5", "ndcg@10")
    )
    return (
        f"Hybrid against vectors alone: {', '.join(gains)}. `passages.p@5` {figures['passages.p@5']:.3f}; "
        f"{figures['documents']:.0f} documents, {figures['chunks']:.0f} chunks, "
        f"{figures['ingest.minutes']:.1f} minutes of ingest, {figures['memory_mb']:.0f} MB.\n"
    )
