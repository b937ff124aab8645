"""The tree of errors."""

from __future__ import annotations

import inspect

import pytest

from ragstone.core import errors
from ragstone.core.errors import RagstoneError
from ragstone.core.remedies import Action, Remedy

EVERY = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, RagstoneError)]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [error.code for error in EVERY]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("error", EVERY)
def test_an_error_says_what_and_what_next(error: type[RagstoneError]) -> None:
    raised = error("what happened", hint="what to do")
    assert (str(raised), raised.hint) == ("what happened", "what to do")
    assert error("alone").hint == ""
    assert error.__name__ in (errors.__doc__ or "")


def test_what_may_pass_is_worth_trying_again() -> None:
    assert {error.code for error in EVERY if error.retryable} == {
        "kb_gone",
        "overloaded",
        "store_busy",
        "collection_busy",
        "store_full",
        "remote_failed",
        "rate_limited",
        "search_failed",
        "fetch_failed",
    }


@pytest.mark.parametrize(
    ("status", "retryable"), [(0, True), (404, False), (403, False), (429, True), (408, True), (503, True)]
)
def test_a_fetch_is_worth_another_try_unless_the_server_said_no(status: int, retryable: bool) -> None:
    assert errors.FetchError("no", status=status).retryable == retryable


def test_an_unknown_knowledge_base_names_the_tenant_unless_it_is_the_usual_one() -> None:
    usual, other = errors.unknown_kb("demo", "default"), errors.unknown_kb("demo", "acme")
    assert (str(usual), usual.remedy) == ("there is no knowledge base 'demo' yet", Remedy(Action.INGEST, kb="demo"))
    assert errors.unknown_kb("default", "default").remedy == Remedy(Action.INGEST)
    assert str(other) == "there is no knowledge base 'demo' yet in tenant 'acme'"
    assert other.remedy == Remedy(Action.INGEST, kb="demo", tenant="acme")


def test_no_knowledge_base_is_to_be_made_under_a_name_that_none_can_have() -> None:
    error = errors.unknown_kb("Holiday Rules", "default", ["holiday-rules"])
    assert str(error) == "there is no knowledge base 'Holiday Rules'"
    assert (error.hint, error.remedy) == ("name one that is there (holiday-rules), or", Remedy(Action.LIST_KBS))
