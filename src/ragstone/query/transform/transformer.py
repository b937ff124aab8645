"""Apply the transforms that the settings or a request name, all at once, each to the query itself.

A transform that cannot do its work leaves the query as it is and says so in a note; a search never fails by one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from ragstone.core.errors import ModelError, ModelUnavailable, RemoteError, StoreError
from ragstone.core.protocols import LLM
from ragstone.query.transform.by_llm import TASKS, propose
from ragstone.query.transform.decompose import decompose
from ragstone.query.transform.entities import other_names
from ragstone.query.transform.feedback import feedback
from ragstone.query.transform.proposals import Proposal, Variants, combine, unchanged
from ragstone.query.transform.synonyms import Thesaurus, read_dictionary, synonyms
from ragstone.query.transform.wording import CLEANING, build_cleaner
from ragstone.query.transform.wordnet import WordNet
from ragstone.settings.retrieval import RetrievalSettings, Transform
from ragstone.settings.tree import LLMSettings

logger = logging.getLogger(__name__)
LLM_TRANSFORMS: frozenset[Transform] = frozenset(TASKS)
"""Those that wait for a language model."""
Passages = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the texts of the first passages that a query finds by word."""


class Transformer:
    """Turns a query into what is searched for in its place."""

    def __init__(
        self,
        names: Sequence[Transform],
        *,
        llm: LLM | None = None,
        llm_settings: LLMSettings | None = None,
        dictionary: Thesaurus | None = None,
        vocabulary: Thesaurus | None = None,
    ) -> None:
        self.names = tuple(names)
        self._llm = llm
        self._max_tokens = (llm_settings or LLMSettings()).max_tokens
        self._thesauri = [thesaurus for thesaurus in (dictionary, vocabulary) if thesaurus is not None]

    async def apply(
        self,
        query: str,
        *,
        seconds: float,
        passages: Passages | None = None,
        names: Sequence[Transform] | None = None,
    ) -> Variants:
        """Return the texts to search for, within `seconds`; `names` replace those of the settings."""
        wanted = tuple(dict.fromkeys(self.names if names is None else names))
        if not wanted:
            return unchanged(query)
        notes: list[str] = []
        deadline = asyncio.get_running_loop().time() + seconds

        async def attempt(name: Transform) -> Proposal:
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._proposal(name, query, seconds, passages)
            except TimeoutError:
                notes.append(f"{name}: out of time")
            except (RemoteError, ModelError, StoreError) as error:
                logger.info("searching without the transform %s: %s", name, error)
                notes.append(f"{name}: {error}")
            return Proposal()

        proposals = await asyncio.gather(*(attempt(name) for name in wanted if name not in CLEANING))
        return combine(query, proposals, notes, build_cleaner(frozenset(wanted)))

    async def _proposal(
        self, name: Transform, query: str, seconds: float, passages: Passages | None
    ) -> Proposal:
        match name:
            case "synonyms":
                if not self._thesauri:
                    raise ModelUnavailable(
                        "no dictionary", hint="set retrieval.dictionary or retrieval.wordnet"
                    )
                return synonyms(query, self._thesauri)
            case "decompose":
                return Proposal(also=decompose(query))
            case "entities" | "feedback":
                texts = await passages(query) if passages else ()
                return other_names(query, texts) if name == "entities" else feedback(query, texts)
            case _:
                if self._llm is None:
                    raise ModelUnavailable("no LLM", hint="set llm.model")
                return await propose(name, query, self._llm, max_tokens=self._max_tokens, seconds=seconds)


def build_transformer(settings: RetrievalSettings, llm: LLM | None, llm_settings: LLMSettings) -> Transformer:
    """Return the transformer that the settings ask for. Raises `SettingsError` when a file they name cannot be used."""
    return Transformer(
        settings.transforms,
        llm=llm,
        llm_settings=llm_settings,
        dictionary=read_dictionary(settings.dictionary) if settings.dictionary else None,
        vocabulary=WordNet(settings.wordnet) if settings.wordnet else None,
    )
