from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from ragstone.evaluate.report import Report, compare, machine, report_table
from ragstone.evaluate.runner import SystemScores
from ragstone.schemas.evaluation import EvaluationSchema

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "p@5", "hit@10")


def _row(system: str, *scores: float, degraded: tuple[str, ...] = ()) -> SystemScores:
    return SystemScores(
        system=system,
        scores=dict.fromkeys(METRICS, sum(scores) / len(scores)),
        per_query=dict.fromkeys(METRICS, scores),
        latencies_ms=(1.0, 2.0, 3.0),
        degraded=degraded,
    )


def _report(*rows: SystemScores) -> Report:
    return Report(
        dataset="rocks",
        documents=12,
        queries=3,
        rows=rows,
        models={"embedding": "granite@1", "reranker": None},
        profile="default",
        comparisons=compare(rows[-1], rows[:-1]),
    )


def _shape(report: Report) -> Any:
    return EvaluationSchema.of(report, machine={}, failed=()).as_json()


def test_the_json_shape() -> None:
    report = _report(_row("lexical", 0.5, 0.5, 0.5), _row("hybrid", 0.75, 0.75, 0.75))
    printed = _shape(report)
    assert json.loads(json.dumps(printed)) == printed
    assert list(printed)[:6] == ["dataset", "documents", "queries", "rows", "models", "profile"]
    assert printed["dataset"] == "rocks"
    assert (printed["documents"], printed["queries"]) == (12, 3)
    assert printed["models"] == {"embedding": "granite@1", "reranker": None}
    assert printed["profile"] == "default"
    assert printed["rows"][1] == {
        "system": "hybrid",
        **dict.fromkeys(METRICS, 0.75),
        "p50_ms": 2.0,
        "p95_ms": 2.9,
        "degraded": [],
    }


def test_intervals_of_the_last_system_against_each_other_one() -> None:
    printed = _shape(_report(_row("lexical", 0.5, 0.5), _row("dense", 1.0, 1.0), _row("hybrid", 0.75, 0.75)))
    compared = [(entry["system"], entry["against"], entry["metric"]) for entry in printed["compare"]]
    assert compared == [("hybrid", other, metric) for other in ("lexical", "dense") for metric in METRICS]
    assert printed["compare"][0] == {
        "system": "hybrid",
        "against": "lexical",
        "metric": "ndcg@10",
        "difference": 0.25,
        "low": 0.25,
        "high": 0.25,
        "confidence": 0.95,
    }


def test_the_machine_is_described() -> None:
    described = machine()
    assert set(described) == {"cores", "memory_mb", "processor", "system", "python"}
    assert all(described.values())


@pytest.mark.parametrize("system", ["lexical", "dense", "hybrid"])
def test_the_table_shows_every_system(system: str) -> None:
    text = _printed(_report(_row("lexical", 0.5), _row("dense", 0.625), _row("hybrid", 0.75)))
    line = next(line for line in text.splitlines() if f"│ {system} " in line)
    score = {"lexical": "0.500", "dense": "0.625", "hybrid": "0.750"}[system]
    assert line.count(score) == len(METRICS)
    assert "rocks: 12 documents, 3 queries" in text


def test_the_table_shows_intervals_and_what_was_degraded() -> None:
    text = _printed(_report(_row("lexical", 0.5), _row("hybrid", 0.75, degraded=("dense",))))
    assert "hybrid - lexical, ndcg@10: +0.250 (+0.250 to +0.250, 95% confidence)" in text
    assert "hybrid was degraded: dense" in text


def test_a_name_with_brackets_is_shown_as_it_is() -> None:
    report = replace(_report(_row("[bold]dense", 0.5)), dataset="rocks [red]")
    assert "rocks [red]: 12 documents" in _printed(report)
    assert "│ [bold]dense " in _printed(report)


def _printed(report: Report) -> str:
    output = StringIO()
    Console(width=160, file=output).print(report_table(report))
    return output.getvalue()
