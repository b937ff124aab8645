"""`ragstone reembed`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.cli.conftest import Cli

from ragstone.settings.tree import EmbeddingSettings
from ragstone.testing.fakes import FakeEmbedder


@pytest.fixture
def moving(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Three documents of the configured model, and others that can be had by name."""

    def build(chosen: EmbeddingSettings) -> FakeEmbedder:
        return FakeEmbedder() if "/" not in chosen.model else FakeEmbedder(name=chosen.model)

    monkeypatch.setattr("ragstone.engine.components.build_embedder", build)
    return filled


def test_a_kb_is_moved_and_moved_back(moving: Cli) -> None:
    moved = moving("reembed", "--model", "a/new", "--json")
    assert moved.code == 0
    found = moved.json
    assert (found["outcome"], found["mode"], found["model"], found["generation"], found["replaced"]) == (
        "promoted",
        "full",
        "a/new@1",
        2,
        "fake@1",
    )
    assert found["written"] == found["chunks"] > 0
    assert [one["query"] for one in found["comparison"]["validation"]] == [
        "prompt caching",
        "LangGraph tools",
        "vector databases",
    ]
    assert moving("search", "dogs", "--json").json["degraded"] == []
    listed = moving("reembed", "--spaces", "--json").json
    assert [(one["model"], one["state"]) for one in listed["spaces"]] == [("fake@1", "retired"), ("a/new@1", "live")]
    back = moving("reembed", "--rollback", "--json")
    assert (back.code, back.json["outcome"], back.json["model"]) == (0, "rolled back", "fake@1")


def test_who_names_the_live_model_is_told_how_to_embed_everything_again(moving: Cli) -> None:
    same = moving("reembed", "--model", "fake")
    assert (same.code, "fake@1, generation 1, is filled: 0 vectors written" in same.out) == (0, True)
    command = "ragstone reembed --model fake --mode full"
    assert f"hint: this knowledge base has the model already; to embed everything again: {command}\n" in same.err
    assert "hint:" not in moving("reembed", "--mode", "incremental").err


def test_a_kb_is_refreshed_by_hand(moving: Cli) -> None:
    done = moving("reembed", "--refresh", "--json")
    assert done.code == 0
    found = done.json
    assert (found["kb"], found["outcome"], found["model"]) == ("default", "fresh", "fake@1")
    assert (found["written"], found["differing"], found["reembedded"]) == (0, 0, None)
    assert found["sampled"] > 0
    assert found["lowest_cosine"] > 0.99
    assert "0 missing vectors filled in" in moving("reembed", "--refresh").out


@pytest.mark.parametrize("wasted", [("--force",), ("--grace-days", "3")])
@pytest.mark.parametrize("way", ["--refresh", "--status"])
def test_what_would_not_act_is_refused(moving: Cli, way: str, wasted: tuple[str, ...]) -> None:
    refused = moving("reembed", way, *wasted)
    assert (refused.code, refused.err) == (2, f"error: {way} takes no --force or --grace-days\nhint: leave those out\n")


def test_the_status_of_refreshing_is_shown(moving: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert moving("reembed", "--status", "--json").json == {
        "kb": "default",
        "every": "manual",
        "when": [],
        "next_at": None,
        "last": None,
    }
    monkeypatch.setenv("RAGSTONE_EMBEDDING__REFRESH__EVERY", "0 0 1 1 *")
    monkeypatch.setenv("RAGSTONE_EMBEDDING__REFRESH__WHEN", '["model"]')
    shown = moving("reembed", "--status")
    assert shown.code == 0
    assert "0 0 1 1 *; also on: model" in shown.out
    assert "-01-01 00:00 UTC" in shown.out
    assert "never" in shown.out


def test_ways_of_reembedding_do_not_go_together(moving: Cli) -> None:
    refused = moving("reembed", "--refresh", "--model", "a/new")
    assert (refused.code, "--refresh takes no --model" in refused.err) == (2, True)
    assert moving("reembed", "--refresh", "--status").code == 2


def test_labels_that_name_no_document_are_refused(moving: Cli, tmp_path: Path) -> None:
    labels = tmp_path / "golden.jsonl"
    labels.write_text('{"query": "dogs", "relevant": ["another/fares.md"]}\n', encoding="utf-8")
    refused = moving("reembed", "--model", "a/new", "--queries", labels)
    assert (refused.code, refused.out) == (2, "")
    assert "no label of golden.jsonl names a document of knowledge base 'default'" in refused.err
    assert "'another/fares.md'" in refused.err
    assert [one["model"] for one in moving("reembed", "--spaces", "--json").json["spaces"]] == ["fake@1"]
    labels.write_text('{"query": "dogs", "relevant": ["pages/fares.md", "gone.md"]}\n', encoding="utf-8")
    moved = moving("reembed", "--model", "a/new", "--queries", labels, "--json").json
    assert (moved["outcome"], moved["comparison"]["dataset"]) == ("promoted", "golden.jsonl")


def test_people_read_both_figures(moving: Cli) -> None:
    shown = moving("reembed", "--model", "a/new", "--mode", "dual")
    assert shown.code == 0
    assert "mrr@10" in shown.out
    assert "before" in shown.out
    assert "“prompt caching”:" in shown.out
    assert "a/new@1, generation 2, is beside the live one:" in shown.out
    assert "retired" not in moving("reembed", "--spaces").out


def test_what_was_never_made_live_can_be_discarded(moving: Cli) -> None:
    moving("reembed", "--model", "a/new", "--mode", "dual", "--quiet")
    assert moving("reembed", "--cleanup", "--json").json == {"removed": 0}
    assert moving("reembed", "--discard", "--json").json == {"removed": 1}


def test_what_was_replaced_goes_at_once_when_told_to(moving: Cli) -> None:
    moving("reembed", "--model", "a/new", "--quiet")
    assert moving("reembed", "--cleanup", "--json").json == {"removed": 0}
    assert moving("reembed", "--cleanup", "--force", "--json").json == {"removed": 1}
    nothing = moving("reembed", "--rollback", "--json")
    assert (nothing.code, nothing.json["error"]["code"]) == (4, "not_found")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--rollback", "--cleanup"), "--rollback and --cleanup do not go together"),
        (("--spaces", "--model", "x"), "--spaces takes no --model, --mode or --queries"),
    ],
)
def test_what_does_not_go_together_is_refused(moving: Cli, given: tuple[str, ...], message: str) -> None:
    refused = moving("reembed", *given, "--json")
    assert (refused.code, refused.json["error"]["message"]) == (2, message)
