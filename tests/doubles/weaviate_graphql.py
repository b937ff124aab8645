"""Reads the GraphQL that the Weaviate double answers: one root, one class, its arguments and the fields asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.doubles.rest import Refused

from ragstone.core.types import Json

TOKEN = re.compile(
    r"""[\s,]*(?:(?P<mark>[{}()\[\]:])|(?P<text>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>[_A-Za-z]\w*)|(?P<end>$))"""
)


class Word(str):
    """A bare word, which is not the text of the same letters."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Query:
    """`{ root { name(arguments) { fields } } }`."""

    root: str
    name: str
    arguments: Mapping[str, Json]
    fields: Mapping[str, Json]


def parse_query(text: str) -> Query:
    """Read a query; anything malformed is refused."""
    tokens = _Tokens(text)
    tokens.expect("{")
    root = tokens.word()
    tokens.expect("{")
    name = tokens.word()
    arguments = tokens.members("(", ")")
    fields = tokens.fields()
    for _ in range(2):
        tokens.expect("}")
    if tokens.kind != "end":
        raise Refused(200, f"Syntax Error GraphQL: unexpected {tokens.value!r:.40}")
    return Query(root, name, arguments, fields)


class _Tokens:
    """The query, one token at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._next()

    def _next(self) -> None:
        found = TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            raise Refused(200, f"Syntax Error GraphQL at {self._at}")
        self._at = found.end()
        self.kind, self.value = found.lastgroup, found[found.lastgroup]

    def expect(self, mark: str) -> None:
        if self.kind != "mark" or self.value != mark:
            raise Refused(200, f"Syntax Error GraphQL: expected {mark}, found {self.value!r:.40}")
        self._next()

    def word(self) -> Word:
        if self.kind != "word":
            raise Refused(200, f"Syntax Error GraphQL: expected a name, found {self.value!r:.40}")
        word = Word(self.value)
        self._next()
        return word

    def members(self, opening: str, closing: str) -> dict[str, Json]:
        self.expect(opening)
        found: dict[str, Json] = {}
        while (self.kind, self.value) != ("mark", closing):
            name = self.word()
            self.expect(":")
            if name in found:
                raise Refused(200, f"there can be only one {name}")
            found[name] = self._literal()
        self._next()
        return found

    def fields(self) -> dict[str, Json]:
        self.expect("{")
        found: dict[str, Json] = {}
        while self.kind == "word":
            name = self.word()
            found[name] = self.fields() if (self.kind, self.value) == ("mark", "{") else None
        self.expect("}")
        return found

    def _literal(self) -> Json:
        if (self.kind, self.value) == ("mark", "{"):
            return self.members("{", "}")
        if (self.kind, self.value) == ("mark", "["):
            self._next()
            items = []
            while (self.kind, self.value) != ("mark", "]"):
                items.append(self._literal())
            self._next()
            return items
        if self.kind == "word":
            word = self.word()
            return {"true": True, "false": False}.get(word, word)
        if self.kind not in ("text", "number"):
            raise Refused(200, f"Syntax Error GraphQL: unexpected {self.value!r:.40}")
        value = json.loads(self.value)
        self._next()
        return value
