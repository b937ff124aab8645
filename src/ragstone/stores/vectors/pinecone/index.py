"""Pinecone's control plane: finding the index, or making it and waiting until it is ready."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from ragstone.core.errors import ModelMismatch, SettingsError, StoreBusy
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json
from ragstone.fetch.calls import Sleep
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.rest import RestService, service_url

CONTROL_PLANE = "https://api.pinecone.io"
CLOUDS = ("aws", "azure", "gcp")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?")
READY_WAIT = 1.0
DENSE = "_values"
"""The field that holds the vectors of an index that is used by vectors instead of documents."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index that is ready."""

    url: str
    dimension: int


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The index to use, and where it is created if it does not exist."""

    control: str
    name: str
    cloud: str
    region: str
    dimension: int | None
    patience: float
    """Seconds to wait for an index to be ready and for what was written to be found."""


def index_settings(adapter: Adapter, patience: float) -> IndexSettings:
    """Return the options that name the index; refuse what Pinecone would."""
    options = {"environment": "us-west1-gcp", "index_name": "ma-rag-rpg-index"} | adapter.options
    region, _, cloud = _text(options, "environment").rpartition("-")
    cloud, region = _text(options, "cloud", cloud), _text(options, "region", region)
    if cloud not in CLOUDS or not region:
        raise SettingsError(
            f"store.vectors.options: pinecone has no cloud '{cloud:.40}' with region '{region:.40}'",
            hint=f"set cloud to one of {', '.join(CLOUDS)} and region, such as aws and us-east-1",
        )
    name = _text(options, "index_name")
    if not NAME.fullmatch(name):
        raise SettingsError(
            f"store.vectors.options.index_name is {name!r:.60}",
            hint="use up to 45 of a-z, 0-9 and '-', starting and ending with a letter or digit",
        )
    dimension = options.get("dimension")
    if dimension is not None and (isinstance(dimension, bool) or not isinstance(dimension, int)):
        raise SettingsError(f"store.vectors.options.dimension is {dimension!r:.40}", hint="give a whole number")
    return IndexSettings(service_url(adapter, CONTROL_PLANE), name, cloud, region, dimension, patience)


def api_key(adapter: Adapter) -> str:
    """Return the key of the settings or, for Pinecone itself, of the environment."""
    if adapter.api_key is not None:
        return adapter.api_key.get_secret_value()
    # The key in the environment is for Pinecone only.
    key = os.environ.get("PINECONE_API_KEY", "") if adapter.url in (None, CONTROL_PLANE) else ""
    if not key:
        raise SettingsError(
            "store.vectors: pinecone needs an API key", hint="set store.vectors.api_key or PINECONE_API_KEY"
        )
    return key


async def find_index(service: RestService, settings: IndexSettings) -> Index | None:
    """Return the index if it exists and is ready."""
    described = await _describe(service, settings)
    return None if described is None else _ready(service, settings, described)


async def make_index(service: RestService, settings: IndexSettings, dimension: int, sleep: Sleep) -> Index:
    """Return the index; create it for vectors of this length if it does not exist."""
    if settings.dimension not in (None, dimension):
        raise mismatch(settings.name, settings.dimension or 0, dimension)
    waited = 0.0
    while waited < settings.patience:
        described = await _describe(service, settings)
        if described is None:
            await _create(service, settings, dimension)
        elif (index := _ready(service, settings, described)) is not None:
            return index
        await sleep(READY_WAIT)
        waited += READY_WAIT
    raise StoreBusy(
        f"index '{settings.name}' of pinecone was not ready within {settings.patience:g} s",
        hint="try again; making an index takes up to a few minutes",
    )


def mismatch(name: str, there: int, wanted: int) -> ModelMismatch:
    """Return the error for vectors that the index was not made for."""
    return ModelMismatch(
        f"index '{name}' of pinecone holds vectors of {there} dimensions, not of {wanted}",
        hint="use the embedding model that it was made for, or set store.vectors.options.index_name to a new name: "
        f"an index of {wanted} dimensions is made then",
        remedy=Remedy(Action.REEMBED),
    )


async def _describe(service: RestService, settings: IndexSettings) -> Json:
    answer = await service.call("GET", f"{settings.control}/indexes/{settings.name}", expect={404})
    return None if answer.status == 404 else answer.body


async def _create(service: RestService, settings: IndexSettings, dimension: int) -> None:
    body = {
        "name": settings.name,
        "schema": {"fields": {DENSE: {"type": "dense_vector", "dimension": dimension, "metric": "cosine"}}},
        "deployment": {"deployment_type": "managed", "cloud": settings.cloud, "region": settings.region},
    }
    # 409: another process made it first.
    await service.call("POST", f"{settings.control}/indexes", body, expect={409})


def _ready(service: RestService, settings: IndexSettings, described: Json) -> Index | None:
    match described:
        case {"status": {"ready": bool(ready)}, "schema": {"fields": {"_values": field}}, **rest}:
            _check_kind(settings, field, rest.get("deployment"))
            host = rest.get("host")
            if not ready or not isinstance(host, str):
                return None
            return Index(_address(settings, host), field["dimension"])
    raise service.failure(
        settings.control,
        f"describes index '{settings.name}' as one without dense vectors",
        hint="set store.vectors.options.index_name to another name: the index is made then",
    )


def _check_kind(settings: IndexSettings, field: Json, deployment: Json) -> None:
    match field:
        case {"type": "dense_vector", "metric": "cosine", "dimension": int()}:
            pass
        case _:
            raise SettingsError(
                f"index '{settings.name}' of pinecone does not compare dense vectors by cosine",
                hint="set store.vectors.options.index_name to another name: the index is made then",
            )
    if isinstance(deployment, dict) and deployment.get("deployment_type") == "pod":
        raise SettingsError(
            f"index '{settings.name}' of pinecone runs on pods, which cannot list what they hold",
            hint="use a serverless index: set index_name to a new name, with cloud and region",
        )


def _address(settings: IndexSettings, host: str) -> str:
    # An index has an address of its own, reached by the scheme of the control plane unless it says otherwise.
    scheme = settings.control.partition("://")[0]
    return host if "://" in host else f"{scheme}://{host}"


def _text(options: dict[str, Any], name: str, default: str = "") -> str:
    value = options.get(name, default)
    if not isinstance(value, str):
        raise SettingsError(f"store.vectors.options.{name} is {value!r:.40}", hint="give a text")
    return value
