"""Keys of services come from the environment, reach the service they are for, and rest nowhere."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.doubles.openai import OpenAIDouble, chat_reply
from tests.doubles.rest import RestDouble
from tests.doubles.weaviate import WeaviateDouble
from tests.doubles.web import json_reply

from ragstone import Engine, Item, open_engine
from ragstone.core.errors import StoreError
from ragstone.core.search import SearchQuery
from ragstone.settings.load import known_keys, load_settings
from ragstone.testing.workspaces import workspace_of

FIRST = {"store": "canary-store-1", "web": "canary-web-1", "llm": "canary-llm-1"}
SECOND = {"store": "canary-store-2", "web": "canary-web-2", "llm": "canary-llm-2"}
PAGE = {"title": "Fog", "url": "https://harbour.example/fog", "description": "The ferry is late today."}
pytestmark = pytest.mark.usefixtures("fake_model")


class Services:
    """A vector store, a search engine and a language model, each of which wants a key."""

    def __init__(self, weaviate: WeaviateDouble, brave: RestDouble, llm: OpenAIDouble) -> None:
        self.weaviate = weaviate
        self.brave = brave
        self.llm = llm

    def environment(self, folder: Path, keys: dict[str, str]) -> dict[str, str]:
        """What an operator would export."""
        return {
            "RAGSTONE_DATA_DIR": str(folder),
            "RAGSTONE_STORE__VECTORS__KIND": "weaviate",
            "RAGSTONE_STORE__VECTORS__URL": self.weaviate.url,
            "RAGSTONE_STORE__VECTORS__API_KEY": keys["store"],
            "RAGSTONE_WEB__KIND": "brave",
            "RAGSTONE_WEB__URL": f"http://{self.brave.host}/res/v1/web/search",
            "RAGSTONE_WEB__API_KEY": keys["web"],
            "RAGSTONE_WEB__RETRIES": "0",
            "RAGSTONE_RETRIEVAL__ROUTING": "auto",
            "RAGSTONE_LLM__MODEL": "m",
            "RAGSTONE_LLM__BASE_URL": self.llm.url,
            "RAGSTONE_LLM__API_KEY": keys["llm"],
        }

    def keys_seen(self) -> set[str]:
        """What was sent to each of them since the last look."""
        seen = {one.headers["authorization"] for one in self.weaviate.http.requests}
        seen |= {one.headers["x-subscription-token"] for one in self.brave.requests}
        seen |= {
            value for one in self.llm.requests for name, value in one.headers.items() if name.lower() == "authorization"
        }
        for requests in (self.weaviate.http.requests, self.brave.requests, self.llm.requests):
            requests.clear()
        return {one.removeprefix("Bearer ") for one in seen}


@pytest.fixture
def services() -> Iterator[Services]:
    with (
        WeaviateDouble(api_key=FIRST["store"]) as weaviate,
        RestDouble(lambda _: json_reply({"web": {"results": [PAGE]}})) as brave,
        OpenAIDouble(lambda _: chat_reply("The ferry leaves at nine [1].")) as llm,
    ):
        yield Services(weaviate, brave, llm)


async def use_all(engine: Engine, name: str) -> None:
    """Store something in one service, and ask the other two."""
    text = f"The {name} ferry leaves the north pier at nine."
    await workspace_of(engine).documents.ingest_items([Item("test", name, f"test/{name}", text)])
    assert (await workspace_of(engine).search(SearchQuery(f"{name} ferry", arms="dense"))).hits
    assert (await workspace_of(engine).search(f"is the {name} ferry late today because of fog")).web
    await workspace_of(engine).ask("When does the ferry leave the north pier?")


def check_nowhere(folder: Path, secrets: set[str]) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        for secret in secrets:
            forms = (secret.encode(), base64.b64encode(secret.encode()), secret.encode("utf-16-le"))
            assert not any(form in content for form in forms), f"{secret} is in {path.name}"


@pytest.mark.req("R-SEC-05", "R-SEC-06")
async def test_keys_of_services_come_from_the_environment_rest_nowhere_and_are_rotated_there(
    data_dir: Path, services: Services
) -> None:
    async with open_engine(load_settings(environment=services.environment(data_dir, FIRST))) as engine:
        await use_all(engine, "early")
        assert services.keys_seen() == set(FIRST.values())
        check_nowhere(data_dir, set(FIRST.values()))
    services.weaviate.api_key = SECOND["store"]
    async with open_engine(load_settings(environment=services.environment(data_dir, SECOND))) as engine:
        await use_all(engine, "late")
        assert services.keys_seen() == set(SECOND.values())
        assert len((await workspace_of(engine).search(SearchQuery("ferry", arms="dense"))).hits) == 2
    check_nowhere(data_dir, {*FIRST.values(), *SECOND.values()})


KEYS = [key for key in known_keys() if key.endswith(("api_key", "dsn", "secret", "security.key"))]


@pytest.mark.req("R-SEC-06")
@pytest.mark.parametrize("key", KEYS)
def test_every_key_can_be_given_by_the_environment_and_is_not_shown(key: str) -> None:
    name = "RAGSTONE_" + key.upper().replace(".", "__")
    settings = load_settings(environment={name: "canary"})
    value: object = settings
    for part in key.split("."):
        value = getattr(value, part)
    assert isinstance(value, SecretStr)
    assert value.get_secret_value() == "canary"
    assert "canary" not in repr(settings) + str(settings) + settings.model_dump_json()


async def test_a_key_that_is_refused_is_not_told(data_dir: Path, services: Services) -> None:
    services.weaviate.api_key = "another"
    settings = load_settings(environment=services.environment(data_dir, FIRST))
    async with open_engine(settings) as engine:
        with pytest.raises(StoreError, match="weaviate") as refused:
            await workspace_of(engine).documents.ingest_items([Item("test", "a", "a", "The ferry.")])
    assert FIRST["store"] not in f"{refused.value!r} {refused.value.hint} {refused.value.__cause__!r}"
