"""A corpus of any length with questions whose answers are known: the same ones for the same seed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

BETWEEN = "\n\n"
NAMES = ("Ilse", "Bram", "Odile", "Tobin", "Marit", "Cato", "Runa", "Piet", "Saskia", "Joren", "Nell", "Aldo")
PLACES = (
    "the salt mill",
    "the glass bridge",
    "the lower quay",
    "the bell foundry",
    "the tide library",
    "the beacon hill",
    "the copper mine",
    "the night market",
)
ACTS = (
    "hid a brass compass",
    "mended a torn sail",
    "sold a jar of honey",
    "buried a silver whistle",
    "painted a wooden heron",
    "lost a leather ledger",
    "found a cracked lantern",
    "carved a bone flute",
)
SEASONS = ("in early spring", "at midsummer", "during the harvest", "in the first frost")
SETTINGS = (
    "The wind had turned before dawn, and the gulls stayed on the roofs.",
    "Nobody in the street remembered so quiet a morning.",
    "A cart with a broken wheel blocked the way for most of the day.",
    "The ferry was late, as it always was when it rained.",
)
ENDINGS = (
    "The reeve wrote it down and asked no further.",
    "It was talked about for weeks afterwards.",
    "Two children saw it and told the baker.",
    "By evening the story had already changed.",
)
SCENES_PER_CHAPTER = 6
FACT = re.compile(
    rf"(?P<who>{'|'.join(NAMES)}) (?P<act>{'|'.join(ACTS)}) at (?P<place>{'|'.join(PLACES)}) "
    rf"(?P<when>{'|'.join(SEASONS)})\."
)


@dataclass(frozen=True, slots=True)
class TestQuery:
    """A question with what answers it."""

    __test__ = False  # no test case

    id: str
    query: str
    expected_chunk_ids: tuple[str, ...]
    """`chunk_N` for the paragraph number N of the corpus, from 0: its chunk when each paragraph is one."""
    expected_keywords: tuple[str, ...]
    min_relevant_results: int

    def is_answered_by(self, text: str) -> bool:
        """Return whether a passage holds the answer, however the corpus was cut."""
        return all(keyword in text for keyword in self.expected_keywords)


class TestDataGenerator:
    """Writes a corpus and asks about it."""

    __test__ = False

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def generate_test_corpus(self, num_chapters: int = 5) -> str:
        """Return a story in chapters. Each scene is a paragraph with one fact, and no two facts share name and act."""
        most = len(NAMES) * len(ACTS) // SCENES_PER_CHAPTER
        if not 1 <= num_chapters <= most:
            raise ValueError(f"a corpus has from 1 to {most} chapters, not {num_chapters}")
        chosen = random.Random(self._seed)  # noqa: S311  # nothing secret
        pairs = [(name, act) for name in NAMES for act in ACTS]
        chosen.shuffle(pairs)
        paragraphs: list[str] = []
        for chapter in range(num_chapters):
            own = pairs[chapter * SCENES_PER_CHAPTER : (chapter + 1) * SCENES_PER_CHAPTER]
            scenes = [_write_scene(chosen, name, act) for name, act in own]
            scenes[0] = f"Chapter {chapter + 1}. {scenes[0]}"
            paragraphs += scenes
        return BETWEEN.join(paragraphs)

    def generate_test_queries(self, corpus: str, num_queries: int = 10) -> list[TestQuery]:
        """Return questions about facts of a corpus, each once."""
        facts = [(number, fact) for number, text in enumerate(corpus.split(BETWEEN)) if (fact := FACT.search(text))]
        if not 1 <= num_queries <= len(facts):
            raise ValueError(f"the corpus has facts for {len(facts)} queries, not for {num_queries}")
        chosen = random.Random(self._seed).sample(facts, num_queries)  # noqa: S311
        return [_ask(f"q{n}", number, fact) for n, (number, fact) in enumerate(chosen, 1)]


def _write_scene(chosen: random.Random, name: str, act: str) -> str:
    fact = f"{name} {act} at {chosen.choice(PLACES)} {chosen.choice(SEASONS)}."
    return " ".join((chosen.choice(SETTINGS), fact, chosen.choice(ENDINGS)))


def _ask(query_id: str, number: int, fact: re.Match[str]) -> TestQuery:
    thing: Sequence[str] = fact["act"].split()[1:]
    return TestQuery(
        id=query_id,
        query=f"Where was {fact['who']} with {' '.join(thing)}?",
        expected_chunk_ids=(f"chunk_{number}",),
        expected_keywords=(fact["who"], thing[-1], fact["place"]),
        min_relevant_results=1,
    )
