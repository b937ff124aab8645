"""LlamaIndex as an extractive reader: its optimizer keeps the sentence of the hits that is nearest to the question.

It reads the same hits with the same embedding model. `make peers` installs it in a folder of its own. Haystack's only
extractive reader needs a model of a hub, and no such model installs as a package, so it is not measured.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit, Role
from ragstone.language.sentences import sentence_spans

FOLDER = Path(".venv/llama-index")
NAME = "LlamaIndex, best sentence and its neighbours"


def is_installed() -> bool:
    """Return whether LlamaIndex can be imported, from its own folder or otherwise."""
    if FOLDER.is_dir() and str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # behind the packages of this environment
    return importlib.util.find_spec("llama_index") is not None


def build_reader(embedder: Embedder) -> Callable[[str, Sequence[Hit]], Awaitable[str]]:
    """Return a function that gives what LlamaIndex keeps of some hits."""
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.postprocessor import SentenceEmbeddingOptimizer
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    loop = asyncio.get_running_loop()

    class SameModel(BaseEmbedding):  # type: ignore[misc]  # LlamaIndex is not installed where types are checked
        """Embeds with the model that the hits were found with."""

        def _embed(self, texts: Sequence[str], role: Role) -> list[list[float]]:
            made = asyncio.run_coroutine_threadsafe(embedder.embed(texts, role), loop).result()
            return [list(map(float, row)) for row in made.vectors]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._embed([query], "query")[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return (await embedder.embed([query], "query")).vectors[0].tolist()  # type: ignore[no-any-return]

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._embed([text], "document")[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return self._embed(texts, "document")

    def shorten(question: str, text: str) -> str:
        sentences = split(text)
        optimizer: Any = SentenceEmbeddingOptimizer(
            embed_model=SameModel(), percentile_cutoff=1.01 / len(sentences), tokenizer_fn=split
        )
        nodes = optimizer.postprocess_nodes([NodeWithScore(node=TextNode(text=text))], QueryBundle(question))
        return str(nodes[0].node.text)

    async def read(question: str, hits: Sequence[Hit]) -> str:
        text = "\n\n".join(hit.text for hit in hits)
        return await asyncio.to_thread(shorten, question, text) if split(text) else ""

    return read


def split(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]
