"""`ragstone models`: which models there are, which are here, and how to get the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragstone.core.errors import ModelUnavailable
from ragstone.serve.cli.output import table, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.models.weights import Weights
    from ragstone.settings.tree import EmbeddingSettings, Settings

ModelState = Literal["installed", "missing", "remote"]
COLOURS = {"installed": "green", "missing": "yellow", "remote": "cyan"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the catalogue; `get` is what to type to have it."""

    name: str
    kind: Literal["embedding", "reranker"]
    state: ModelState
    dimension: int | None
    max_tokens: int | None
    get: str
    configured: bool


async def list_models(session: Session) -> None:
    """List models, and how to get those that are missing."""
    entries = list(catalogue(session.settings()))
    session.show({"models": [asdict(entry) for entry in entries]}, lambda out: _draw(out, entries))


async def pull_model(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A hub name, such as BAAI/bge-small-en-v1.5.")],
    revision: Annotated[
        str | None, typer.Option("--revision", help="A branch, tag or commit of the model.")
    ] = None,
) -> None:
    """Download a model from the hub. This is the only command that downloads anything."""
    import asyncio

    from ragstone.models.weights.hub import pull

    async with session.patience(f"downloading {name} …"):
        folder = await asyncio.to_thread(pull, name, revision=revision)
    session.show({"model": name, "path": str(folder)}, lambda out: out.print(f"{name} is in {folder}"))


def catalogue(settings: Settings) -> Iterator[Entry]:
    """All models of the catalogue and those the settings name, each with its state on this machine."""
    from ragstone.models.weights.catalogue import MODELS, canonical_name
    from ragstone.settings.tree import EmbeddingSettings

    configured = canonical_name(settings.embedding.model)
    for name, facts in MODELS.items():
        chosen = settings.embedding if name == configured else EmbeddingSettings(model=name)
        state, get = _state(chosen)
        yield Entry(name, "embedding", state, facts.dimension, facts.max_tokens, get, name == configured)
    if configured not in MODELS:
        state, get = _state(settings.embedding)
        yield Entry(configured, "embedding", state, None, None, get, True)
    yield _reranker(settings)


def is_remote(embedding: EmbeddingSettings) -> bool:
    """Whether the embedding model is behind an address."""
    from ragstone.models.weights.catalogue import known_model

    known = known_model(embedding.model)
    if embedding.path is not None:
        return False
    return not known.local if known else embedding.remote.base_url is not None


def verify_weights(embedding: EmbeddingSettings) -> None:
    """Check that a local model's weights are here and are what was published; raises `ModelError` if not."""
    weights = _weights(embedding)
    if weights is not None:
        weights.encoder()


def _weights(embedding: EmbeddingSettings) -> Weights | None:
    """Where the weights come from; None for static vectors, which have no encoder."""
    from ragstone.models.weights import find_weights
    from ragstone.models.weights.artefacts import cache_folder
    from ragstone.models.weights.catalogue import STATIC, canonical_name
    from ragstone.models.weights.packages import WORDLLAMA, installed_file

    if embedding.path is None and canonical_name(embedding.model) == STATIC:
        installed_file(*WORDLLAMA, STATIC)
        return None
    return find_weights(embedding.model, path=embedding.path, cache=cache_folder())


def _state(embedding: EmbeddingSettings) -> tuple[ModelState, str]:
    if is_remote(embedding):
        return "remote", f"export RAGSTONE_EMBEDDING__MODEL={embedding.model}"
    try:
        _weights(embedding)
    except ModelUnavailable as error:
        return "missing", error.advice
    return "installed", ""


def _reranker(settings: Settings) -> Entry:
    from ragstone.models.weights import find_weights
    from ragstone.models.weights.artefacts import cache_folder
    from ragstone.settings.retrieval import CROSS_ENCODER

    chosen = settings.reranking
    model = chosen.model if chosen.kind == "cross_encoder" and chosen.model else CROSS_ENCODER
    state: ModelState = "installed"
    get = ""
    try:
        find_weights(model, path=chosen.path, cache=cache_folder())
    except ModelUnavailable as error:
        state, get = "missing", error.advice
    return Entry(model, "reranker", state, None, None, get, chosen.kind == "cross_encoder")


def _draw(out: Console, entries: list[Entry]) -> None:
    rows = table("", "model", "kind", "state", "dimension", "tokens", right=("dimension", "tokens"))
    for entry in entries:
        rows.add_row(
            "*" if entry.configured else "",
            text(entry.name),
            entry.kind,
            text(entry.state, COLOURS[entry.state]),
            str(entry.dimension or ""),
            f"{entry.max_tokens:,}" if entry.max_tokens else "",
        )
    out.print(rows)
    out.print()
    out.print("* is what the settings name. To get what is missing:")
    for entry in entries:
        if entry.state == "missing":
            out.print(text(f"  {entry.get}"), soft_wrap=True)
