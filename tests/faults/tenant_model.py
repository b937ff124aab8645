"""What must be found for whom: a model of tenants whose every text carries words that nobody else has.

A mark is such a word. Whatever a call returns is searched for marks and ids, so that a leak is seen in any field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from ragstone import Item

KBS = ("notes", "letters")
WORDS = ("ferry", "harbour", "lantern", "orchard")
COLOURS = ("red", "blue")
SOURCE = "desk"
EVERYWHERE = "The same notice hangs on every door."
"""A text that all tenants have, to the byte."""
LETTERS = "bcdfghjkmnpqrtvwxz"
"""No vowels and no s: a word of these is never a stop word and has no other stem than itself."""
MARK = re.compile(f"qx[{LETTERS}]{{6}}")
ID = re.compile(r"(?<!recipe=')\b[0-9a-f]{32}\b")
"""A recipe names the way a document was made; equal ways have equal names."""
_numbers = count()


def new_mark() -> str:
    """A word that has never been used."""
    number, letters = next(_numbers), ""
    for _ in range(6):
        number, digit = divmod(number, len(LETTERS))
        letters += LETTERS[digit]
    return f"qx{letters}"


@dataclass(frozen=True)
class Paper:
    """A document as its tenant knows it."""

    uri: str
    text: str
    colour: str | None = None

    def has(self, word: str) -> bool:
        return word in re.findall(r"\w+", self.text.lower())


@dataclass
class Life:
    """A tenant from its making to its end. Who comes after it under the same name is somebody else."""

    name: str
    canary: str = field(default_factory=new_mark)
    exists: bool = False
    suspended: bool = False
    kbs: dict[str, dict[str, Paper]] = field(default_factory=dict)
    """What is live, by kb and uri."""
    queued: dict[str, tuple[str, Paper]] = field(default_factory=dict)
    """What was uploaded and has not been worked on: the kb and the document, by uri."""
    marks: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.marks.add(self.canary)

    def write(self, uri: str, word: str, colour: str | None = None) -> Paper:
        """A text of this tenant's own, with a word of this text's own."""
        mark = new_mark()
        self.marks.add(mark)
        return Paper(uri, f"The {word} by {self.canary} is near {mark}.", colour)

    def item(self, paper: Paper) -> Item:
        """The document as a source offers it; its address is that of others, too."""
        return Item(
            SOURCE,
            paper.uri,
            paper.uri,
            paper.text,
            metadata={"colour": paper.colour, "owner": self.canary, "source_type": "memo"},
        )

    def keep(self, kb: str, *papers: Paper) -> None:
        self.exists = True
        self.kbs.setdefault(kb, {}).update({paper.uri: paper for paper in papers})

    def live(self, kb: str, colour: str | None = None) -> list[Paper]:
        return [one for one in self.kbs[kb].values() if colour in (None, one.colour)]

    def drop_kb(self, kb: str) -> int:
        """Forget a kb and what waits to join it; how many documents went."""
        before = len(self.queued)
        self.queued = {uri: one for uri, one in self.queued.items() if one[0] != kb}
        return len(self.kbs.pop(kb, ())) + before - len(self.queued)


@dataclass
class Owners:
    """Who a mark or an id belongs to."""

    ids: dict[str, Life] = field(default_factory=dict)

    def check(self, life: Life, answer: object) -> None:
        """Assert that nothing in an answer is another tenant's."""
        said = repr(answer)
        strange = set(MARK.findall(said)) - life.marks
        assert not strange, f"{life.name} was told {strange}: {said}"
        for identity in ID.findall(said):
            owner = self.ids.setdefault(identity, life)
            assert owner is life, f"{life.name} was shown an id of {owner.name}: {said}"

    def of_others(self, life: Life) -> Iterator[str]:
        return (identity for identity, owner in self.ids.items() if owner is not life)

    def forget(self, life: Life) -> None:
        self.ids = {identity: owner for identity, owner in self.ids.items() if owner is not life}
