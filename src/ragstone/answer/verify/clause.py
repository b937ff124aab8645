"""The finite verb of a clause, found by the form of words and by where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragstone.answer.verify.grammar import Token, is_known_verb
from ragstone.answer.verify.lexicon import AFTER_NOUNS, BE, HAVE, LINKS, MODALS, OWNING, PLURALS

Form = Literal["auxiliary", "past", "participle", "s", "base"]
_PLURAL = frozenset(("they", "we", "you", "i"))
_VERBAL = ("auxiliary", "past", "participle")


@dataclass(frozen=True, slots=True)
class Verb:
    """A word that is the verb of its clause, surely or maybe."""

    place: int
    """Among the tokens."""
    token: Token
    form: Form
    sure: bool

    def agrees_with(self, other: Verb) -> bool:
        """Whether it can share the subject of the other: arrives with leaves, arrive with must."""
        word = other.token.word
        if self.form == "s":
            present = other.form == "s" or word in ("is", "has", "does", "can", "will", "must", "may")
            return present or (self.sure and _is_past(other))
        if self.form in ("past", "participle"):
            return other.form in ("past", "participle") or word in BE | HAVE | {"did"}
        if self.form == "base":
            return other.form == "base" or word in MODALS or word in ("are", "have", "were", "do")
        return True

    def same_time(self, other: Verb) -> bool:
        """Whether both speak of the past, or neither."""
        return _is_past(self) == _is_past(other)


def _is_past(verb: Verb) -> bool:
    return verb.form in ("past", "participle") or verb.token.word in ("was", "were", "had", "did")


def first_verb(words: Sequence[Token], *, shared: bool = False) -> Verb | None:
    """The first verb of a clause, sure ones first; with `shared`, one that begins it, its subject being elsewhere."""
    if shared:
        place = next((n for n, word in enumerate(words) if word.kind != "adverb"), 0)
        return _verb_at(words, place, shared=True) if words else None
    end = next((n for n, word in enumerate(words) if n and word.word in LINKS), len(words))
    found = [verb for n in range(1, end) if (verb := _verb_at(words[:end], n, shared=False))]
    return next((verb for verb in found if verb.sure), found[0] if found else None)


def _verb_at(words: Sequence[Token], place: int, *, shared: bool) -> Verb | None:
    token = words[place]
    before = next((word for word in reversed(words[:place]) if word.kind != "adverb"), None)
    after = words[place + 1] if place + 1 < len(words) else None
    if before is None and not shared:
        return None
    if token.kind == "auxiliary":
        return None if before and before.word == "to" else Verb(place, token, "auxiliary", True)
    if before is not None and not before.is_nominal:
        return None
    has_object = after is not None and (after.word in OWNING or after.kind == "object" or after.word == "it")
    if token.kind in ("past", "participle"):
        sure = (
            has_object or token.kind == "past" or _after_pronoun(before) or _acts(token, after, shared=shared)
        )
        return Verb(place, token, token.kind, sure)
    known = is_known_verb(token.word) and not (shared and token.word in PLURALS)
    if after is not None and (after.kind in _VERBAL or (after.word == "of" and not known)):
        return None
    sure = has_object or known or _after_pronoun(before)
    plural = before is not None and (before.kind == "s" or before.word in _PLURAL)
    if token.kind == "s" and not plural:
        led = shared or (place > 1 and words[0].kind in ("determiner", "name"))
        return Verb(place, token, "s", sure or (led and _has_noun(after, shared=shared)))
    if token.kind == "word" and (plural or before is None) and not token.word.endswith("ing"):
        return Verb(place, token, "base", sure)
    return None


def _has_noun(after: Token | None, *, shared: bool) -> bool:
    """Whether a noun follows, as one hardly ever follows a plural: "wastes ink", "rents two offices"."""
    return after is not None and after.kind in (("word", "s", "number", "name") if shared else ("word",))


def _acts(token: Token, after: Token | None, *, shared: bool) -> bool:
    """Whether a form such as "opened" is a verb by what follows: "dried fish" is a noun with its adjective."""
    if shared:
        return after is None or after.kind in ("preposition", "adverb", "number", "object", "determiner")
    return after is None and token.word not in AFTER_NOUNS


def _after_pronoun(before: Token | None) -> bool:
    return before is not None and before.kind == "pronoun"
