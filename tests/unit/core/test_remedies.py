"""Remedies as data, and their words on a surface without a shell."""

from __future__ import annotations

import pytest

from ragstone.core.batches import batched
from ragstone.core.health import Check, HealthFinding
from ragstone.core.remedies import Action, Remedy, advise, join_advice, render_with

PULL = Remedy(Action.PULL_MODEL, model="bge-small")


def test_a_remedy_comes_back_from_json() -> None:
    assert PULL.to_json() == {"action": "pull_model", "model": "bge-small"}
    assert Remedy.from_json(PULL.to_json()) == PULL


@pytest.mark.parametrize("stored", [None, {}, {"action": "of_a_later_version", "model": "x"}])
def test_an_unknown_remedy_is_none(stored: dict[str, str] | None) -> None:
    assert Remedy.from_json(stored) is None


def test_without_a_surface_a_remedy_is_a_sentence() -> None:
    assert advise("", PULL) == "download the model 'bge-small'"
    assert advise("wait", Remedy(Action.EXPORT)) == "wait; export an archive"
    assert advise("wait", None) == "wait"


@pytest.mark.parametrize(
    ("remedy", "told"),
    [
        (Remedy(Action.INGEST), "ingest documents"),
        (Remedy(Action.INGEST, kb="nosuch"), "ingest documents into the knowledge base 'nosuch'"),
        (Remedy(Action.INGEST, kb="a", tenant="b"), "ingest documents into the knowledge base 'a' for the tenant 'b'"),
        (
            Remedy(Action.REEMBED, kb="a", model="b", current_model="c"),
            "re-embed the knowledge base 'a' with the model 'b', or set embedding.model to c",
        ),
        (Remedy(Action.CHECK_STORES, arms="dense"), "check the stores; until then search with arms set to dense"),
        (Remedy(Action.ASK, question="When does {it} open?"), "ask a question, for example: When does {it} open?"),
        (Remedy(Action.EXPORT, later="x"), "export an archive"),
    ],
)
def test_a_sentence_has_the_details_that_are_known(remedy: Remedy, told: str) -> None:
    assert advise("", remedy) == told


def test_a_surface_renders_remedies_in_its_own_words_and_only_inside_its_block() -> None:
    with render_with(lambda hint, remedy: f"{hint}|{remedy.action.value}"):
        assert advise("wait", PULL) == "wait|pull_model"
    assert "|" not in advise("wait", PULL)


@pytest.mark.parametrize(
    ("hint", "bare", "joined"),
    [("", False, "type x"), ("wait, or", False, "wait, or type x"), ("list them with", True, "list them with: type x")],
)
def test_a_hint_and_a_remedy_become_one_text(hint: str, bare: bool, joined: str) -> None:
    assert join_advice(hint, "type x", bare=bare) == joined


def test_a_finding_advises_by_words_and_remedy() -> None:
    finding = HealthFinding("ledger", "files", "warn", "two are left", "remove them, or", remedy=Remedy(Action.EXPORT))
    assert finding.advice == "remove them, or export an archive"
    assert Check("python", "ok", "3.11").fix == ""


def test_batches_hold_everything_in_order() -> None:
    assert list(batched([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert list(batched([], 2)) == []
