"""Apply the transforms that the settings or a request name, all at once, each to the query itself.

Plain cleaning acts on what is embedded: matching by word folds case, drops function words and stems anyway.
A transform that cannot do its work leaves the query as it is and says so in a note; a search never fails by one.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ragstone.core.errors import ModelError, ModelUnavailable, RemoteError, StoreError
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LLM, LexicalIndex
from ragstone.language.analyzer import fold
from ragstone.language.detector import language_of_query
from ragstone.language.questions import decompose
from ragstone.language.terms import MARK, is_function_word, terms_of
from ragstone.query.context import SearchContext, Variants
from ragstone.query.transform.by_llm import TASKS, propose
from ragstone.query.transform.entities import other_names
from ragstone.query.transform.feedback import feedback
from ragstone.query.transform.proposals import Proposal, combine
from ragstone.query.transform.synonyms import Thesaurus, read_dictionary, synonyms
from ragstone.query.transform.wordnet import WordNet
from ragstone.settings.retrieval import RetrievalSettings, Transform
from ragstone.settings.tree import LLMSettings

logger = logging.getLogger(__name__)
LLM_TRANSFORMS: frozenset[Transform] = frozenset(TASKS)
"""Those that wait for a language model."""
Passages = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the texts of the first passages that a query finds by word."""

FIRST_PASSAGES = 10
"""Passages that transforms may read of the kb's own text."""
KEPT_FOR_SEARCH_MS = 300.0
"""The time that an LLM must leave for the search that follows it."""


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
        self._dictionary = dictionary
        self._vocabulary = vocabulary
        """Knows English only."""

    async def apply(
        self,
        query: str,
        *,
        seconds: float,
        passages: Passages | None = None,
        names: Sequence[Transform] | None = None,
        language: str = "",
    ) -> Variants:
        """Return the texts to search for, within `seconds`; `names` replace those of the settings.

        What knows English only is left out for a query in another `language`.
        """
        wanted = tuple(dict.fromkeys(self.names if names is None else names))
        if not wanted:
            return Variants.of(query)
        notes: list[str] = []
        deadline = asyncio.get_running_loop().time() + seconds

        async def attempt(name: Transform) -> Proposal:
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._proposal(name, query, seconds, passages, language)
            except TimeoutError:
                notes.append(f"{name}: out of time")
            except (RemoteError, ModelError, StoreError) as error:
                logger.info("searching without the transform %s: %s", name, error)
                notes.append(f"{name}: {error}")
            return Proposal()

        proposals = await asyncio.gather(*(attempt(name) for name in wanted if name not in CLEANING))
        return combine(query, proposals, notes, build_cleaner(frozenset(wanted), language))

    async def _proposal(
        self, name: Transform, query: str, seconds: float, passages: Passages | None, language: str
    ) -> Proposal:
        match name:
            case "synonyms":
                thesauri = [thesaurus for thesaurus in (self._dictionary, self._vocabulary) if thesaurus is not None]
                if not thesauri:
                    raise ModelUnavailable("no dictionary", hint="set retrieval.dictionary or retrieval.wordnet")
                return synonyms(query, [known for known in thesauri if not language or known is self._dictionary])
            case "decompose":
                return Proposal(also=() if language else decompose(query))
            case "entities" | "feedback":
                texts = await passages(query) if passages else ()
                return other_names(query, texts) if name == "entities" else feedback(query, texts, language)
            case _:
                if self._llm is None:
                    raise ModelUnavailable("no LLM", hint="set llm.model")
                return await propose(name, query, self._llm, max_tokens=self._max_tokens, seconds=seconds)


class RephraseStage:
    """Applies transforms. An LLM is asked in thorough mode, or when the request itself names the strategy."""

    def __init__(self, transformer: Transformer, ledger: Ledger, lexical: LexicalIndex) -> None:
        self._transformer = transformer
        self._ledger = ledger
        self._lexical = lexical

    async def run(self, search: SearchContext) -> Variants:
        """Return the texts to search for; the query itself if no transform applies."""
        request, record = search.request, search.record
        names = self._names(search)
        if not names:
            return Variants.of(request.query)
        if request.strategy:
            seconds = record.search_seconds - KEPT_FOR_SEARCH_MS / 1000
        else:
            kept = KEPT_FOR_SEARCH_MS if LLM_TRANSFORMS.intersection(names) else 0.0
            seconds = (record.left_ms - kept) / 1000
        if seconds <= 0:
            record.skip("transform", 1, "out of time")
            return Variants.of(request.query)

        async def passages(query: str) -> Sequence[str]:
            return await self._first_passages(search, query)

        with record.stage("transform", 1) as span:
            language = language_of_query(request.query, search.kb.languages)
            variants = await self._transformer.apply(
                request.query, seconds=seconds, passages=passages, names=names, language=language
            )
            span.left = len(set(variants.dense + variants.lexical))
        for note in variants.notes:
            record.degrade(note)
        return variants

    def _names(self, search: SearchContext) -> tuple[Transform, ...]:
        strategy = search.request.strategy
        if strategy:
            return () if strategy == "none" else (strategy,)
        names = self._transformer.names
        if search.request.mode == "thorough":
            return names
        for name in LLM_TRANSFORMS.intersection(names):
            search.record.skip("transform", 1, f"{name}: an LLM is asked in thorough mode only")
        return tuple(name for name in names if name not in LLM_TRANSFORMS)

    async def _first_passages(self, search: SearchContext, query: str) -> Sequence[str]:
        found = await self._lexical.search(search.tenant, search.kb, query, FIRST_PASSAGES, search.request.where)
        live = await self._ledger.of(search.tenant).chunks(search.kb, [candidate.chunk_id for candidate in found])
        return [live[chunk_id].chunk.contextual for chunk_id, _ in found if chunk_id in live]


def build_transformer(settings: RetrievalSettings, llm: LLM | None, llm_settings: LLMSettings) -> Transformer:
    """Return the transformer that the settings ask for. Raises `SettingsError` when a file they name cannot be used."""
    return Transformer(
        settings.transforms,
        llm=llm,
        llm_settings=llm_settings,
        dictionary=read_dictionary(settings.dictionary) if settings.dictionary else None,
        vocabulary=WordNet(settings.wordnet) if settings.wordnet else None,
    )


_WORD = re.compile(r"\S+")
_AROUND = ".,;:!?\"'()[]"


def normalize(text: str) -> str:
    """Return the text in lower case, without accents, compatibility forms, repeated spaces and end marks."""
    return " ".join(fold(text).lower().split()).rstrip(".?!,;: ") or text


def without_stop_words(text: str, language: str = "") -> str:
    """Return the text without the function words of its language ("" is English), unless it has no others."""
    kept = [word for word in text.split() if not is_function_word(word.strip(_AROUND), language)]
    return " ".join(kept) or text


def stem_words(text: str, language: str = "") -> str:
    """Return each word as its stem; identifiers and function words stay whole."""
    return _WORD.sub(lambda match: _stem(match.group(), language), text)


def _stem(word: str, language: str) -> str:
    bare = word.strip(_AROUND)
    if not bare.isalpha() or is_function_word(bare, language):
        return word
    return word.replace(bare, terms_of(bare, language)[0].partition(MARK)[0], 1)


CLEANING: Mapping[Transform, Callable[[str, str], str]] = {
    "normalize": lambda text, _: normalize(text),
    "stop_words": without_stop_words,
    "stem": stem_words,
}


def build_cleaner(names: frozenset[str], language: str = "") -> Callable[[str], str]:
    """Return a function that applies the cleanings of these names to a text of that language, in a fixed order."""
    steps = [clean for name, clean in CLEANING.items() if name in names]

    def clean(text: str) -> str:
        for step in steps:
            text = step(text, language)
        return text

    return clean
