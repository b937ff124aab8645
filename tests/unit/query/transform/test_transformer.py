from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ragstone.core.errors import RemoteError, SettingsError, StoreError
from ragstone.core.model_types import Message
from ragstone.query.transform import LLM_TRANSFORMS, Transformer, Variants, build_transformer
from ragstone.query.transform.synonyms import Dictionary
from ragstone.settings.retrieval import RetrievalSettings, Transform
from ragstone.settings.tree import LLMSettings
from ragstone.testing.fakes import FakeLLM

ROLES = "Role Based Access Control (RBAC) rules who may do what. Access is granted by rules."


class Silent:
    """A model that never answers."""

    name = "silent"

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str]:
        yield await self.complete(messages, max_tokens=max_tokens, seconds=seconds)

    async def close(self) -> None:
        """Nothing is held."""


async def passages(query: str) -> Sequence[str]:
    return [ROLES, ROLES.replace("rules", "policies")]


async def test_no_names_no_change() -> None:
    assert await Transformer(()).apply("Some query?", seconds=1) == Variants.of("Some query?")


@pytest.mark.req("R-QRY-17")
@pytest.mark.parametrize("name", sorted(LLM_TRANSFORMS))
async def test_without_an_llm_the_query_stays_and_a_note_says_why(name: Transform) -> None:
    made = await Transformer([name]).apply("query", seconds=1)
    assert (made.dense, made.lexical, made.rewritten) == (("query",), ("query",), "query")
    assert made.notes == (f"{name}: no LLM",)


@pytest.mark.req("R-QRY-06")
async def test_each_strategy_searches_for_what_its_name_says() -> None:
    llm = FakeLLM(["a fuller query", "query two\nquery three\nquery four", "The query is answered here."])
    transformer = Transformer((), llm=llm)
    rewrite = await transformer.apply("query", seconds=1, names=["rewrite"])
    assert (rewrite.query, rewrite.rewritten) == ("query", "a fuller query")
    assert rewrite.dense == rewrite.lexical == ("a fuller query",)
    expand = await transformer.apply("query", seconds=1, names=["expand"])
    assert expand.dense == expand.lexical == ("query", "query two", "query three", "query four")
    hyde = await transformer.apply("query", seconds=1, names=["hyde"])
    assert hyde.dense == ("query", "The query is answered here.")
    assert hyde.lexical == ("query",)


async def test_a_request_names_its_own_transforms() -> None:
    transformer = Transformer(["normalize"])
    assert (await transformer.apply("Query", seconds=1)).dense == ("query",)
    assert await transformer.apply("Query", seconds=1, names=()) == Variants.of("Query")


@pytest.mark.parametrize("name", sorted(LLM_TRANSFORMS))
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (RemoteError("no network"), "no network"),
        ("", "the reply"),
        ("http://evil.example query", "the reply"),
        ("x" * 9000, "the reply is too long"),
    ],
)
async def test_a_useless_reply_leaves_the_query_as_it_was(name: Transform, reply: str | RemoteError, why: str) -> None:
    made = await Transformer([name], llm=FakeLLM([reply])).apply("query", seconds=1)
    assert (made.dense, made.lexical, made.rewritten) == (("query",), ("query",), "query")
    (note,) = made.notes
    assert note.startswith(f"{name}: ")
    assert why in note


async def test_a_model_that_never_answers_is_given_up() -> None:
    async with asyncio.timeout(240):
        made = await Transformer(["hyde", "normalize"], llm=Silent()).apply("A Query", seconds=0.01)
    assert made.dense == ("a query",)
    assert made.notes == ("hyde: out of time",)


async def test_passages_that_cannot_be_read_are_noted() -> None:
    async def broken(query: str) -> Sequence[str]:
        raise StoreError("the index is gone")

    made = await Transformer(["entities", "feedback"]).apply("RBAC", seconds=1, passages=broken)
    assert made.dense == made.lexical == ("RBAC",)
    assert sorted(made.notes) == ["entities: the index is gone", "feedback: the index is gone"]


async def test_a_mistake_of_ours_is_not_hidden() -> None:
    async def broken(query: str) -> Sequence[str]:
        raise KeyError("oops")

    with pytest.raises(KeyError):
        await Transformer(["entities"]).apply("RBAC", seconds=1, passages=broken)


async def test_transforms_act_together() -> None:
    transformer = Transformer(
        ["normalize", "synonyms", "entities", "decompose", "feedback"], dictionary=Dictionary({"users": ["players"]})
    )
    made = await transformer.apply("What is RBAC? Who are users?", seconds=5, passages=passages)
    assert made.notes == ()
    assert made.dense == (
        "what is rbac? who are users",
        "what is rbac",
        "who are users",
        "what is role based access control? who are users",
    )
    assert made.lexical[0].startswith("What is RBAC? Who are users? players Role Based Access Control")
    assert made.lexical[1:] == ("What is RBAC", "Who are users")


@pytest.mark.req("R-QRY-10", "R-QRY-14")
async def test_what_was_added_is_shown_beside_what_was_asked() -> None:
    made = await Transformer(["entities"]).apply("RBAC", seconds=5, passages=passages)
    assert made.query == "RBAC"
    assert made.rewritten == "RBAC Role Based Access Control | Role Based Access Control"


async def test_synonyms_without_a_dictionary_are_noted() -> None:
    assert (await Transformer(["synonyms"]).apply("car", seconds=1)).notes == ("synonyms: no dictionary",)


async def test_settings_name_the_dictionary(tmp_path: Path) -> None:
    (tmp_path / "terms.yaml").write_text("car: [automobile]")
    settings = RetrievalSettings(transforms=("synonyms",), dictionary=tmp_path / "terms.yaml")
    made = await build_transformer(settings, None, LLMSettings()).apply("car hire", seconds=1)
    assert (made.lexical, made.dense) == (("car hire automobile",), ("car hire",))


@pytest.mark.parametrize("key", ["dictionary", "wordnet"])
def test_a_file_that_settings_name_must_be_there(tmp_path: Path, key: str) -> None:
    settings = RetrievalSettings.model_validate({key: tmp_path / "none"})
    with pytest.raises(SettingsError, match=f"retrieval.{key}"):
        build_transformer(settings, None, LLMSettings())


async def test_what_knows_english_only_is_left_out_for_other_languages() -> None:
    words = Dictionary({"gift": ["present"]})
    transformer = Transformer(["synonyms", "decompose"], dictionary=Dictionary({"pto": ["leave"]}), vocabulary=words)
    query = "gift pto, and how do I pay?"
    english = await transformer.apply(query, seconds=1)
    assert "present" in english.lexical[0]
    assert "leave" in english.lexical[0]
    other = await transformer.apply(query, seconds=1, language="de")
    assert (other.dense, other.lexical) == ((query,), (f"{query} leave",))
