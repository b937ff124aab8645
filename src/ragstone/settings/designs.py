"""Keys and environment variables of the designs that Ragstone implements, read as their own settings.

A file written for one of the designs loads as it is: `rag.*`, `vector_db.*`, and the designs' names under
`ingestion` and `retrieval` become Ragstone's keys. A setting of Ragstone's own name wins over a translated one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from ragstone.core.errors import SettingsError

logger = logging.getLogger(__name__)
Tree = dict[str, Any]
BLOCKS = ("vector_db.chroma.", "vector_db.pinecone.")
DESIGN = "rpg"
"""The profile of the design that has environment variables."""
KEYS = {
    "ingestion.chunk_size": "chunking.size",
    "ingestion.chunk_overlap": "chunking.overlap",
    "ingestion.embedding_model": "embedding.model",
    "ingestion.corpus_path": "ingestion.corpus_path",
    "ingestion.bm25_index_path": "ingestion.bm25_index_path",
    "ingestion.chunk_metadata_path": "ingestion.chunk_metadata_path",
    "retrieval.top_k": "retrieval.k",
    "retrieval.fusion_strategy": "retrieval.fusion",
    "vector_db.provider": "store.vectors.kind",
    "vector_db.chroma.persist_directory": "store.vectors.path",
    "vector_db.chroma.collection_name": "kb",
    "vector_db.chroma.in_memory": "store.vectors.options.in_memory",
    "vector_db.pinecone.api_key": "store.vectors.api_key",
    "vector_db.pinecone.environment": "store.vectors.options.environment",
    "vector_db.pinecone.index_name": "store.vectors.options.index_name",
    "vector_db.pinecone.dimension": "store.vectors.options.dimension",
    "rag.chunking.strategy": "chunking.strategy",
    "rag.chunking.min_size": "chunking.min_size",
    "rag.chunking.max_size": "chunking.size",
    "rag.chunking.overlap": "chunking.overlap",
    "rag.embedding.model": "embedding.model",
    "rag.embedding.dimensions": "embedding.dimensions",
    "rag.embedding.batch_size": "embedding.batch_size",
    "rag.embedding.normalize": "embedding.normalize",
    "rag.retrieval.top_k": "retrieval.candidates",
    "rag.retrieval.similarity_threshold": "retrieval.min_similarity",
    "rag.reranking.model": "reranking.model",
    "rag.reranking.top_k": "retrieval.k",
    "rag.reranking.threshold": "reranking.threshold",
    "rag.context.max_tokens": "answer.max_context_tokens",
    "rag.context.citation_format": "answer.citation_format",
}
"""Keys of the designs that have one counterpart with the same values."""
WEIGHTS = {
    "retrieval.vector_weight": "retrieval.bm25_weight",
    "rag.retrieval.semantic_weight": "rag.retrieval.keyword_weight",
}
"""The weight of the dense arm and that of the lexical arm, of which Ragstone keeps the first's share."""
REWRITER = "retrieval.query_rewriter."
TRANSFORMS = {"decomposition": "decompose", "llm_rewriting": "rewrite"}
NO_EFFECT = {
    "ingestion.vector_index_path": "the vector store keeps its own files: set vector_db.chroma.persist_directory",
    "rag.chunking.fallback": "the recursive chunker always takes over where a text cannot be cut by meaning",
    "rag.context.include_metadata": "passages always carry their metadata",
}
"""Keys that Ragstone has no choice for, with the reason; a value that asks for what it does anyway is silent."""
MEANT_ANYWAY = {"rag.chunking.fallback": "recursive", "rag.context.include_metadata": True}
VARIABLES = {
    "VECTOR_DB_PROVIDER": "vector_db.provider",
    "CHROMA_PERSIST_DIRECTORY": "vector_db.chroma.persist_directory",
    "CHROMA_COLLECTION_NAME": "vector_db.chroma.collection_name",
    "PINECONE_API_KEY": "vector_db.pinecone.api_key",
    "PINECONE_ENVIRONMENT": "vector_db.pinecone.environment",
    "PINECONE_INDEX_NAME": "vector_db.pinecone.index_name",
    "EMBEDDING_MODEL": "ingestion.embedding_model",
    "CORPUS_PATH": "ingestion.corpus_path",
    "BM25_INDEX_PATH": "ingestion.bm25_index_path",
    "METADATA_PATH": "ingestion.chunk_metadata_path",
}
"""Environment variables of the rpg design, by the key of that design they override."""


def translate_file(tree: Tree, variables: Mapping[str, Any], expand: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Take the keys of the designs out of a file's tree and return them, with the variables, under Ragstone's names.

    A file of the design has a block for every vector store. The one that is chosen counts, and `expand` puts in the
    variables that it refers to: those of the others need not be set.
    """
    written = dict(_take_design_keys(tree))
    provider = {**written, **variables}.get("vector_db.provider", "chroma")
    chosen = {
        key: expand(key, value) if key.startswith(BLOCKS) and key not in variables else value
        for key, value in _of_provider(written, provider).items()
    }
    return translate({**chosen, **variables})


def read_variables(env: Mapping[str, str], profile: str, tree: Tree) -> dict[str, Any]:
    """Return the designs' environment variables by the key they override, warning of each that has no effect.

    They have common names such as EMBEDDING_MODEL, so they count only with the profile of their design.
    """
    given = {key: env[name] for name, key in VARIABLES.items() if env.get(name)} if profile == DESIGN else {}
    design = tree.get("vector_db")
    chosen = design.get("provider") if isinstance(design, dict) else tree.get("store", {}).get("vectors")
    kind = chosen.get("kind") if isinstance(chosen, dict) else chosen
    provider = given.get("vector_db.provider", kind or "chroma")
    effective = _of_provider(given, provider)
    for name, key in VARIABLES.items():
        if key in given and key not in effective:
            logger.warning("%s has no effect: the vector store is %s", name, provider)
    return effective


def _of_provider(given: Mapping[str, Any], provider: str) -> dict[str, Any]:
    """Leave out the keys of vector stores that are not in use."""
    return {key: value for key, value in given.items() if not key.startswith(BLOCKS) or f".{provider}." in key}


def _take_design_keys(tree: Tree) -> Iterator[tuple[str, Any]]:
    for top in ("vector_db", "rag"):
        below = tree.pop(top, None)
        for key, value in _flatten({top: below}) if below is not None else ():
            if key not in KEYS and key not in NO_EFFECT and key not in _SPECIAL:
                raise SettingsError(f"unknown setting '{key}'", hint="the keys are in docs/reference/configuration.md")
            yield key, value
    for top in ("ingestion", "retrieval"):
        section = tree.get(top)
        if not isinstance(section, dict):
            continue
        for key, value in list(_flatten({top: section})):
            if KEYS.get(key, key) != key or key in NO_EFFECT or key in _SPECIAL:
                section.pop(key.split(".")[1], None)
            yield key, value


_SPECIAL = frozenset(
    (
        *WEIGHTS,
        *WEIGHTS.values(),
        "rag.reranking.enabled",
        *(f"{REWRITER}{name}" for name in ("enabled", "expansion", *TRANSFORMS)),
    )
)


def _flatten(tree: Tree, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def translate(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return Ragstone's keys and values for those of the designs."""
    settings = {KEYS[key]: value for key, value in given.items() if key in KEYS}
    if "store.vectors.path" in settings:
        settings["store.vectors.path"] = _in_data_folder(settings["store.vectors.path"])
    for dense, lexical in WEIGHTS.items():
        if dense in given or lexical in given:
            settings["retrieval.dense_weight"] = _dense_share(given.get(dense), given.get(lexical), dense)
    if "rag.reranking.enabled" in given:
        settings["reranking.kind"] = "cross_encoder" if given["rag.reranking.enabled"] else "none"
    if "rag.chunking.max_size" in given:
        settings["chunking.unit"] = "chars"
    if settings.get("store.vectors.options.in_memory"):
        settings.pop("store.vectors.path", None)
    if any(key.startswith(REWRITER) for key in given):
        settings["retrieval.transforms"] = list(_transforms(given))
    for key, reason in NO_EFFECT.items():
        if key in given and given[key] != MEANT_ANYWAY.get(key):
            logger.warning("%s has no effect: %s", key, reason)
    return settings


def _in_data_folder(path: Any) -> Any:
    """Return a path of the design as one of the data folder, which the design calls `data` wherever it is."""
    parts = PurePath(path).parts if isinstance(path, str) else ()
    return str(PurePath(*parts[1:])) if parts[:1] == ("data",) else path


def _dense_share(dense: Any, lexical: Any, key: str) -> float:
    try:
        first = float(1 - float(lexical) if dense is None else dense)
        second = float(1 - first if lexical is None else lexical)
        return first / (first + second)
    except (TypeError, ValueError, ZeroDivisionError):
        hint = f"{key} and {WEIGHTS[key]} are numbers of at least 0, and not both 0"
        raise SettingsError(f"setting '{key}': {dense} and {lexical} are no weights", hint=hint) from None


def _transforms(given: Mapping[str, Any]) -> Iterator[str]:
    if not given.get(f"{REWRITER}enabled", True):
        return
    if given.get(f"{REWRITER}expansion", True):
        yield "entities"
        if given.get("retrieval.dictionary") or given.get("retrieval.wordnet"):
            yield "synonyms"
    for name, transform in TRANSFORMS.items():
        if given.get(f"{REWRITER}{name}"):
            yield transform
