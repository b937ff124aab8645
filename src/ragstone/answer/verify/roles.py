"""Roles that a statement exchanges: who acts and who is acted on, before and after, cause and effect, more and less."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from ragstone.answer.verify.objections import Rival
from ragstone.answer.verify.relations import LIGHT_VERBS, MOST_RELATIONS, Relation, read_relations
from ragstone.language.analyzer import analyze
from ragstone.language.grammar import is_verb_form, words_of
from ragstone.language.inflection import base_forms
from ragstone.language.negation import are_opposites
from ragstone.language.synonyms import are_alike
from ragstone.language.units import unit_of
from ragstone.language.vocabulary import Phrase, Vocabulary, content_words, read_vocabulary

_CORE = ("subject", "object", "to", "from", "by", "for", "with")
_MUTUAL = words_of(
    "meet marry border equal resemble differ adjoin neighbor share connect join link wed fight play merge"
)
"""Verbs whose two sides are the same."""


def is_role_changed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether somebody does in a statement what is done to them in its sources, or what another did."""
    told = [relation for sentence in sentences for relation in read_relations(sentence)]
    known = read_vocabulary(" ".join(sentences))
    for mine in read_relations(statement):
        same = _find_alike(mine, told)
        if same and not any(_bears_out(mine, theirs, known) for theirs in same):
            return True
    return False


def _find_alike(mine: Relation, told: Sequence[Relation]) -> list[Relation]:
    """Return the relations by the same verb that share a word with one, or that a pronoun may connect with it."""
    same = [theirs for theirs in told if _are_same_verb(mine.verb, theirs.verb)][:MOST_RELATIONS]
    most = max((_count_common(mine, theirs) for theirs in same), default=0)
    own = [theirs for theirs in same if _are_forms(mine.verb, theirs.verb)]
    same = own if any(_count_common(mine, theirs) == most > 1 for theirs in own) else same
    return [theirs for theirs in same if theirs.points_back or _count_common(mine, theirs)]


def _bears_out(mine: Relation, theirs: Relation, known: Vocabulary) -> bool:
    if mine.verb != "be" and (mine.denied != theirs.denied or (theirs.possible and not mine.possible)):
        return False
    return not _is_reversed(mine, theirs) and not _is_replaced(mine, theirs, known)


def _is_replaced(mine: Relation, theirs: Relation, known: Vocabulary) -> bool:
    """Return whether one role is the same and another is filled by words that the sources have in other places."""
    if mine.verb == "be" or mine.verb in LIGHT_VERBS:
        return False
    mine, theirs = _name_sides(mine, theirs), _name_sides(theirs, mine)
    unsure = ("subject",) if theirs.points_back or mine.points_back else ()
    roles = [role for role in _CORE if mine.get(role) and theirs.get(role) and role not in unsure]
    kept = [role for role in roles if _overlap(mine.get(role), theirs.get(role))]
    return bool(kept) and any(
        role not in kept and all(map(known.has, mine.get(role))) and not _overlap(mine.get(role), theirs.get("by"))
        for role in roles
    )


def find_other_actor(claim: str, sentence: str) -> Rival | None:
    """Return who did in a sentence what a claim says of somebody whom the sentence does not name, or None."""
    known = content_words(sentence)
    for mine in read_relations(claim):
        actor = [word for word in mine.get("subject") if word.is_name]
        if not actor or not mine.get("object") or any(known.has(word) for word in actor) or mine.verb == "be":
            continue
        told = read_relations(sentence)
        for theirs, following in zip(told, (*told[1:], None), strict=False):
            other = [word for word in theirs.get("subject") if word.is_name]
            same = _are_forms(mine.verb, theirs.verb) and mine.denied == theirs.denied
            # "He wrote and released it": what was released was written.
            done = theirs.get("object") or (following or theirs).get("object")
            if other and same and all(map(done.has, mine.get("object"))):
                return Rival(" ".join(word.text for word in actor), " ".join(word.text for word in other))
    return None


def _are_forms(one: str, other: str) -> bool:
    """Return whether two words are forms of one verb, and not only alike."""
    return not base_forms(one).isdisjoint(base_forms(other))


def _are_same_verb(one: str, other: str) -> bool:
    return one == other or ("be" not in (one, other) and are_alike(one, other))


def _count_common(mine: Relation, theirs: Relation) -> int:
    return sum(map(theirs.words.has, mine.words))


def _is_reversed(mine: Relation, theirs: Relation) -> bool:
    mutual = mine.verb == "be" or not base_forms(mine.verb).isdisjoint(_MUTUAL)
    mine, theirs = _name_sides(mine, theirs), _name_sides(theirs, mine)
    moved = {
        (here, there)
        for here, words in mine.roles.items()
        for word in words
        for there in theirs.roles
        if there != here and theirs.get(there).has(word) and not theirs.get(here).has(word)
    }
    pairs = [(here, there) for here, there in moved if (there, here) in moved]
    if any(not mutual or {here, there} != {"subject", "object"} for here, there in pairs):
        return True
    return not mutual and _has_moved_name(mine, theirs)


def _name_sides(relation: Relation, other: Relation) -> Relation:
    """Return a relation without an object as the other has it: what changes in "it changed" is changed by him."""
    words = relation.get("subject")
    # Where somebody acts and a pronoun is there as well, it is what is acted on: "She was succeeded by him".
    if not words or relation.get("object") or relation.points_back:
        return relation
    acted = sum(map(other.get("object").has, words))
    if other.get("subject") and acted <= sum(map(other.get("subject").has, words)):
        return relation
    if not other.get("object"):
        return relation
    return replace(
        relation, roles={role: found for role, found in relation.roles.items() if role != "subject"} | {"object": words}
    )


def _has_moved_name(mine: Relation, theirs: Relation) -> bool:
    """Return whether a name acts that is acted on in the source, or the reverse."""
    actors = theirs.get("subject")
    others = Phrase(word for role in _CORE[1:] for word in theirs.get(role))
    acts = [word for word in mine.get("subject") if others.has(word) and not actors.has(word)]
    own = Phrase(word for role in _CORE[1:] for word in mine.get(role))
    suffers = [word for word in own if actors.has(word) and not others.has(word)]
    both = Phrase(word for word in mine.get("subject") if own.has(word))
    led = Phrase(word for role in ("on", "to", "from") for word in theirs.get(role))
    if any(
        word.is_name and led.has(word) and not actors.has(word) and not both.has(word) for word in mine.get("subject")
    ):
        return True
    return bool(actors) and any(word.is_name and not both.has(word) for word in (*acts, *suffers))


_CONVERSE = (
    (words_of("sell"), words_of("buy purchase acquire")),
    (words_of("give grant hand award present donate send supply deliver"), words_of("receive get obtain accept")),
    (words_of("lend loan"), words_of("borrow")),
    (words_of("teach train"), words_of("learn study")),
    (words_of("defeat beat"), words_of("lose")),
    (words_of("lease rent let"), words_of("rent hire lease")),
)


def is_converse(statement: str, sentence: str) -> bool:
    """Return whether one tells a deal from the other side: A bought it of B, B sold it to A."""
    for mine in read_relations(statement):
        for theirs in read_relations(sentence):
            if any(_are_sides(mine.verb, theirs.verb, pair) for pair in (*_CONVERSE, *(p[::-1] for p in _CONVERSE))):
                receiver = Phrase((*theirs.get("to"), *(word for word in theirs.get("object") if word.is_name)))
                if _overlap(mine.get("subject"), receiver) or _overlap(mine.get("to"), theirs.get("subject")):
                    return not _overlap(mine.get("subject"), theirs.get("subject"))
    return False


def _are_sides(one: str, other: str, pair: Sequence[frozenset[str]]) -> bool:
    return not base_forms(one).isdisjoint(pair[0]) and not base_forms(other).isdisjoint(pair[1])


def _overlap(mine: Phrase, theirs: Phrase) -> bool:
    """Return whether two phrases share a word; of two names more than one of two words."""
    names = [word for word in mine if word.is_name]
    others = {word.folded for word in theirs if word.is_name}
    same = sum(word.folded in others for word in names)
    if names and others and same:
        return 2 * same > min(len(names), sum(word.is_name for word in theirs)) or any(
            theirs.has(word) for word in mine if not word.is_name
        )
    return any(map(theirs.has, mine))


_FROM_TO = re.compile(r"\bfrom\s(?P<start>[^;]{1,80}?),?\s(?:to|into)\s(?P<end>[^;,]{1,60})", re.I)


def is_way_reversed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether "from" and "to" are exchanged."""
    mine = _find_ways(statement)
    told = [way for sentence in sentences for way in _find_ways(sentence)] if mine else []
    for start, end in mine:
        for first, last in told:
            if _share(start, last) + _share(end, first) > _share(start, first) + _share(end, last):
                return True
    return False


def _find_ways(text: str) -> list[tuple[_Side, _Side]]:
    return [(_read_side(way["start"]), _read_side(way["end"])) for way in _FROM_TO.finditer(text)]


@dataclass(frozen=True, slots=True)
class _Side:
    """The words and numbers of a part of a sentence."""

    words: Phrase
    numbers: tuple[str, ...]


def _read_side(text: str) -> _Side:
    return _Side(content_words(text), tuple(_NUMBER.findall(text)))


def _share(mine: _Side, theirs: _Side) -> int:
    """Return how many words and numbers of one part the other has."""
    known = set(theirs.numbers)
    return sum(map(theirs.words.has, mine.words)) + sum(number in known for number in mine.numbers)


_ORDER = re.compile(
    r"\b(?P<mark>before|after|until|following|prior to|once|followed by|preceded by|in response to"
    r"|(?:and|which|who) then)\b",
    re.I,
)
_FIRST_BEFORE = words_of("before until") | {"prior to", "followed by", "and then", "which then", "who then"}
_JOINS = re.compile(r"\b(?:if|when|whenever|as|because|since|after|before|while|once|until|unless|had|by)\b", re.I)
_MOST_MARKS = 8
_NUMBER = re.compile(r"\d[\d,.]*")
_POINTS_BACK = re.compile(r"(?:this|that|it|which|these)(?: (?:change|step|move|decision|also|then|in turn))?", re.I)
_OCCASION = re.compile(
    r"\b(?:(?P<behind>when|after|once|as(?= (?:the|it|they|he|she|a|an)\b)|as (?:a )?(?:consequence|result) of"
    r"|in response to|thanks to)|(?P<front>enabl(?:es|ed|ing)|so that|and so|thus))\b",
    re.I,
)
"""Marks that may tell a cause."""
_CAUSE = re.compile(
    r"\b(?P<behind>because(?: of)?|due to|owing to|thanks to|on account of|as a result of|result(?:s|ed|ing)? from"
    r"|(?:was|were|is|are|been) caused by|(?:as )?(?:an? |the )?consequence of"
    r"|stem(?:s|med)? from|attributed to|blamed on|since(?! (?:\d|then|version|release)))\b"
    r"|\b(?P<front>caus(?:e[sd]?|ing)(?! of)|led to|lead(?:s|ing)? to|result(?:s|ed|ing)? in|therefore|hence"
    r"|consequently|as a result(?! of)|brought about|prompt(?:s|ed|ing)|trigger(?:s|ed|ing)?|which is why)\b",
    re.I,
)
_MAY_BE_CAUSE = re.compile(
    r"\b(?:because|since|as|due|owing|thanks|caus\w+|led|leads?|leading|result\w*|so|therefore|thus|hence|consequen\w+"
    r"|why|reasons?|mak(?:es|ing)|forc(?:es|ed|ing)|mean(?:s|t|ing)|prompt\w*|trigger\w*|after|when|blam\w+"
    r"|attribut\w+|explain\w*|account\w*|owe[sd]?|responsible|brought)\b",
    re.I,
)


def _pairs(text: str, marks: re.Pattern[str], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what comes first and what follows, or cause and effect, for each mark of a sentence.

    `before` is the sentence before it, which "This led to" points back to.
    """
    for mark in islice(marks.finditer(text), _MOST_MARKS):
        left, right = text[: mark.start()], text[mark.end() :]
        if _POINTS_BACK.fullmatch(left.strip()):
            left = before
        elif all(unit_of(word.folded) for word in content_words(left)):
            # "After it had landed, the crew left": the mark is in front, a comma ends what belongs to it.
            right, comma, rest = right.partition(", ")
            left = rest if comma else ""
        if not left.strip() or not right.strip():
            continue
        if marks is _ORDER:
            yield (left, right) if mark["mark"].lower() in _FIRST_BEFORE else (right, left)
        else:
            yield (right, left) if mark["behind"] else (left, right)


def _pairs_of_all(sentences: Sequence[str], marks: re.Pattern[str]) -> list[tuple[str, str]]:
    return [pair for before, sentence in pairwise(("", *sentences)) for pair in _pairs(sentence, marks, before)]


def is_order_reversed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether the sources tell what a statement puts first as the later one."""
    mine = list(_pairs(statement, _ORDER))
    pairs = _pairs_of_all(sentences, _ORDER) if mine else []
    read = _read_pairs(pairs)
    told = [_read_side(f"{one} {other}") for one, other in pairs]
    for first, then in mine:
        if _is_crossed((first, then), read):
            return True
        both = _read_side(f"{first} {then}")
        if not any(_share(both, other) > 1 for other in told) and _comes_later(first, then, sentences):
            return True
    return False


def _comes_later(first: str, then: str, sentences: Sequence[str]) -> bool:
    """Return whether the sources tell the first of two parts later, without a word that says when it was."""
    here, there = _find_places(first, then, sentences), _find_places(then, first, sentences)
    if not here or not there or sorted(here)[len(here) // 2] < max(there):
        return False
    both = {number for number, _ in here}.intersection(number for number, _ in there)
    return not both or (min(len(here), len(there)) > 1 and not any(_JOINS.search(sentences[number]) for number in both))


def _find_places(part: str, other: str, sentences: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of the words of a part that another has not and that the sentences have once."""
    known = content_words(other)
    found = []
    for word in (word for word in content_words(part) if not known.has(word)):
        alike = Phrase((word,))
        places = [
            (number, same.start)
            for number, sentence in enumerate(sentences)
            if content_words(sentence).has(word)
            for same in content_words(sentence)
            if alike.has(same)
        ]
        found += places if len(places) == 1 else []
    return found


def is_cause_changed(statement: str, sentences: Sequence[str]) -> bool:
    """Return whether a statement gives another cause than its sources, or one where they give none."""
    mine = list(_pairs(statement, _CAUSE))
    pairs = _read_pairs(_pairs_of_all(sentences, _CAUSE)) if mine else []
    occasions = _read_pairs(_pairs_of_all(sentences, _OCCASION)) if mine else []
    may_be = [_read_side(sentence) for sentence in sentences if mine and _MAY_BE_CAUSE.search(sentence)]
    for cause, effect in mine:
        both = _read_side(f"{cause} {effect}")
        if not any(_share(both, sentence) for sentence in may_be):
            return True
        if _is_crossed((cause, effect), [*pairs, *occasions]):
            return True
        told = [told for told, result in pairs if _share(_read_side(effect), result)]
        if told and not any(_share(_read_side(cause), reason) for reason in told):
            return True
    return False


def _read_pairs(pairs: Sequence[tuple[str, str]]) -> list[tuple[_Side, _Side]]:
    return [(_read_side(one), _read_side(other)) for one, other in pairs]


def _is_crossed(mine: tuple[str, str], pairs: Sequence[tuple[_Side, _Side]]) -> bool:
    """Return whether what stands on one side of a mark stands on the other in a source, but for common words."""
    if not pairs:
        return False
    first, second = _distinct(mine[0], mine[1]), _distinct(mine[1], mine[0])
    # What is done first may be done later in the source, whatever else stands on either side.
    doing = [" ".join(word for word in part.split() if is_verb_form(word.lower())) for part in (first, second)]
    parts, verbs = (_read_side(first), _read_side(second)), (_read_side(doing[0]), _read_side(doing[1]))
    for theirs in pairs:
        straight, crossed = _count_sides(parts, theirs)
        if crossed > straight:
            return True
        straight, crossed = _count_sides(verbs, theirs) if crossed else (0, 0)
        if crossed > straight:
            return True
    return False


def _count_sides(mine: tuple[_Side, _Side], theirs: tuple[_Side, _Side]) -> tuple[int, int]:
    """Return how many words two parts share with the same sides of a source, and with the other ones if both do."""
    straight = _share(mine[0], theirs[0]) + _share(mine[1], theirs[1])
    crossed = _share(mine[0], theirs[1]), _share(mine[1], theirs[0])
    return straight, sum(crossed) if all(crossed) else 0


def _distinct(part: str, other: str) -> str:
    """Return the words and numbers of a part that another has not."""
    known = content_words(other)
    numbers = set(_NUMBER.findall(other))
    words = [word.text for word in content_words(part) if not known.has(word)]
    return " ".join([*words, *(number for number in _NUMBER.findall(part) if number not in numbers)])


_DEGREES = (
    frozenset(["more", "most", "higher", "highest", "larger", "largest", "greater", "greatest", "many", "much"]),
    frozenset(["less", "least", "lower", "lowest", "smaller", "smallest", "fewer", "fewest", "few", "little"]),
)
_DEGREE = re.compile(
    rf"\b({'|'.join(sorted(set().union(*_DEGREES)))})\s((?:[\w-]{{2,30}}\s){{0,1}}?[\w-]{{3,30}})", re.I
)


_COMPARED = re.compile(
    r"\b(?P<degree>(?:more|less|fewer) (?:[\w-]{2,30} )?|(?!other|rather)[\w-]{2,20}er |worse )than "
    r"(?P<what>[^,;:.()]{2,60})",
    re.I,
)
_MOST_COMPARED = 8


def is_compared_otherwise(claim: str, source: str) -> bool:
    """Return whether a source compares with the same thing, and the other way: slower than A, but faster than B."""
    told = _read_comparisons(source) if "than" in claim else []
    for degree, what in _read_comparisons(claim):
        same = [theirs for theirs, other in told if _overlap(what, other)]
        if same and all(are_opposites(degree, theirs) for theirs in same):
            return True
    return False


def _read_comparisons(text: str) -> list[tuple[str, Phrase]]:
    """Return the degrees of a text with what each compares with."""
    found = islice(_COMPARED.finditer(text), _MOST_COMPARED)
    return [(match["degree"], content_words(match["what"].split(" but ")[0])) for match in found]


def turns_degree(claim: str, source: str) -> bool:
    """Return whether a claim says less of what the source says more of, word by word: "less massive stars"."""
    mine, theirs = _read_degrees(claim), _read_degrees(source)
    return any(degrees.isdisjoint(theirs.get(word, degrees)) for word, degrees in mine.items())


def _read_degrees(text: str) -> dict[str, set[int]]:
    """Return the words behind "more", "few" and the like, and on which side those stand."""
    found: dict[str, set[int]] = {}
    for match in _DEGREE.finditer(text):
        side = 0 if match[1].lower() in _DEGREES[0] else 1
        for word in analyze(match[2])[:1]:
            found.setdefault(word, set()).add(side)
    return found
