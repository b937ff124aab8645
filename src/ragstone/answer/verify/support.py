"""Support of a statement by the sentences of a passage: nothing is added, and nothing is bound to something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from ragstone.answer.verify.additions import adds_certainty, adds_sufficiency, find_additions, is_one_of_several
from ragstone.answer.verify.appositions import is_role_of_another, is_stated_in_passing
from ragstone.answer.verify.conditions import find_exception, find_framing, is_denied_as_a_whole
from ragstone.answer.verify.defaults import spell_default
from ragstone.answer.verify.fit import Clause, count_shared, find_misfits, find_scattered, is_same, read_clauses
from ragstone.answer.verify.frame import find_replaced, lay_along
from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.answer.verify.roles import (
    is_cause_changed,
    is_compared_otherwise,
    is_converse,
    is_order_reversed,
    is_role_changed,
    is_way_reversed,
    turns_degree,
)
from ragstone.answer.verify.split import split_clauses
from ragstone.language.dates import Moment, is_timed_otherwise
from ragstone.language.measurements import drop_told_rate, tells_period
from ragstone.language.negation import (
    are_opposites,
    changes_extent,
    denies_more,
    drop_emphasis,
    drops_hedge,
    find_denials,
    find_figures,
    has_denial_conflict,
    is_hedged,
    is_swapped,
    restate,
)
from ragstone.language.quantities import Quantity, keep_comparable
from ragstone.language.synonyms import AlikeWords
from ragstone.language.vocabulary import Word, is_measured, read_vocabulary

_CONDITION = re.compile(r"\b(?:if|unless|provided|providing|in case|as long as|otherwise|depending|whether)\b", re.I)
_REGARDLESS = re.compile(
    r"\b(?:whether or not|or not\b|regardless|no matter|even (?:if|when|where|without)|with or without|either way)\b",
    re.I,
)
_CONDITIONAL = re.compile(
    rf"{_CONDITION.pattern}|\b(?:when|would|could|should|where|only|once|requires?|needs?|needed|necessary|in order)\b",
    re.I,
)
_NEGATIVE = re.compile(
    r"\b(?:hardly|fail\w*|lack\w*|refus\w*|reject\w*|prevent\w*|avoid\w*|free of|rather than|instead|except"
    r"|other than|zero|un\w{4,}able|im(?:possible|practical)\w*|in(?:appropriate|sufficient|capable|valid"
    r"|correct)|dis\w{4,}ed)\b",
    re.I,
)

_QUOTED = re.compile(r"\"([^\"\n]{1,300})\"|“([^”\n]{1,300})”|``([^`\n]{1,300})``|`([^`\n]{1,300})`")
_MOST_QUOTED = 12
_REST = 0.2
_NEAR = 0.75
"""Share of what the nearest sentence has of a clause from which another is near as well."""
_SPELT = re.compile(r"[^\W_]+")


def is_denying(text: str) -> bool:
    """Return whether a text has a word that denies something, or may."""
    return bool(find_denials(drop_emphasis(text)))


def near_sentences(statement: str, sentences: Sequence[str]) -> list[str]:
    """Return the sentences that hold most of each clause of a statement, and those that hold the rest of it."""
    near: dict[str, None] = {}
    for clause in read_clauses(statement):
        counts = [sum(count_shared(clause, source) for source in read_clauses(one)) for one in sentences]
        most = max(counts, default=0)
        found = [one for one, count in zip(sentences, counts, strict=True) if count and count >= _NEAR * most]
        near |= dict.fromkeys([*found, *_find_rest(clause, found, sentences)])
    return list(near)


def _find_rest(clause: Clause, found: Sequence[str], sentences: Sequence[str]) -> list[str]:
    """Return the sentence that has most of the words of a clause which none of those found has, if it has some."""
    told = {one: AlikeWords(word for source in read_clauses(one) for word in source.plain) for one in sentences}
    rest = [word for word in clause.plain if not any(told[one].has(word) for one in found)]
    counts = [sum(map(told[one].has, rest)) for one in sentences]
    most = max(counts, default=0)
    return [sentences[counts.index(most)]] if most >= max(2, _REST * len(clause.plain)) else []


def find_unsupported(statement: str, sentences: Sequence[str], evidence: str) -> list[Objection]:
    """Return what speaks against resting a statement on sentences; `evidence` is all the text around them."""
    sentences = [
        statement if is_stated_in_passing(statement, sentence) else spell_default(statement, sentence)
        for sentence in sentences
    ]
    evidence = spell_default(statement, evidence)
    found = find_missing_figures(statement, evidence)
    found += find_additions(statement, evidence)
    for clause in read_clauses(statement):
        found += _compare_with_nearest(statement, clause, sentences)
    found += find_foreign_quotes(statement, evidence)
    near = near_sentences(statement, sentences)
    told = " ".join(near)
    more = (
        (changes_extent, ObjectionKind.NOT_OF_ALL),
        (adds_certainty, ObjectionKind.HEDGED),
        (adds_sufficiency, ObjectionKind.ADDED_WORDS),
        (is_one_of_several, ObjectionKind.NUMBER_MISSING),
        (turns_degree, ObjectionKind.OPPOSITE),
        (is_compared_otherwise, ObjectionKind.OPPOSITE),
    )
    found += [Objection(kind) for is_more, kind in more if is_more(statement, told)]
    if is_denying(statement) and not any(is_denying(one) or _NEGATIVE.search(one) for one in near):
        found.append(Objection(ObjectionKind.DENIED))
    if _REGARDLESS.search(statement) and not _REGARDLESS.search(told):
        found.append(Objection(ObjectionKind.ADDED_CLAUSE))
    if _CONDITION.search(statement) and not any(map(_CONDITIONAL.search, near)):
        found.append(Objection(ObjectionKind.ADDED_CLAUSE))
    found += find_misfits(statement, sentences)
    if find_scattered(statement, sentences):
        found.append(Objection(ObjectionKind.OF_SOMETHING_ELSE))
    clauses = [one for sentence in sentences for one in split_clauses(sentence)]
    for part in dict.fromkeys((statement, *(clause.text for clause in read_clauses(statement)))):
        found += find_replaced(part, clauses, evidence)
    turned = (
        (is_role_of_another, ObjectionKind.OF_ANOTHER),
        (is_role_changed, ObjectionKind.TURNED_ROUND),
        (is_way_reversed, ObjectionKind.TURNED_ROUND),
        (is_order_reversed, ObjectionKind.OTHER_ORDER),
        (is_cause_changed, ObjectionKind.OTHER_CAUSE),
    )
    found += [Objection(kind) for is_turned, kind in turned if is_turned(statement, sentences)]
    return list(dict.fromkeys(found))


def find_foreign_quotes(statement: str, evidence: str) -> list[Objection]:
    """Return the terms in quotation marks that the evidence does not have in these words."""
    said = _spell(evidence)
    quoted = [next(filter(None, match.groups())) for match in islice(_QUOTED.finditer(statement), _MOST_QUOTED)]
    return [Objection(ObjectionKind.NAME_MISSING, words) for words in quoted if _spell(words) not in said]


def _spell(text: str) -> str:
    """Return the words of a text in lower case between single spaces."""
    return f" {' '.join(_SPELT.findall(text.casefold()))} "


def find_missing_figures(statement: str, evidence: str) -> list[Objection]:
    """Return the numbers and dates that the evidence does not state in any unit."""
    stated = [figure for _, _, figure in find_figures(evidence)]
    told = [
        (start, drop_told_rate(figure, evidence) if isinstance(figure, Quantity) else figure)
        for start, _, figure in find_figures(statement)
    ]
    missing = [
        figure
        for start, figure in told
        if not _is_stated(figure, stated)
        and not _points_back(statement[:start], figure)
        and not (isinstance(figure, Quantity) and tells_period(evidence, figure))
    ]
    kinds = [
        ObjectionKind.DATE_MISSING if isinstance(figure, Moment) else ObjectionKind.NUMBER_MISSING for figure in missing
    ]
    return [Objection(kind) for kind in dict.fromkeys(kinds)]


def _is_stated(figure: Quantity | Moment, stated: Sequence[Quantity | Moment]) -> bool:
    """Return whether a figure is stated; a bare number is no statement where the same number has another unit."""
    if isinstance(figure, Quantity):
        stated = keep_comparable(figure, [other for other in stated if isinstance(other, Quantity)])
    same = [other for other in stated if is_same(figure, other)]
    if not isinstance(figure, Quantity) or not is_measured(figure):
        return bool(same)
    measured = [other for other in stated if isinstance(other, Quantity) and is_measured(other)]
    if any(other in measured for other in same):
        return True
    return bool(same) and not any(other.written == figure.written for other in measured)


def lacks_unit(claim: str, evidence: str) -> bool:
    """Return whether a claim gives a number a unit that the evidence does not: 6 minutes where it says 6."""
    units = [figure for _, _, figure in find_figures(claim) if isinstance(figure, Quantity) and is_measured(figure)]
    stated = [figure for _, _, figure in find_figures(evidence) if isinstance(figure, Quantity) and is_measured(figure)]
    known = read_vocabulary(evidence)
    return any(
        not any(figure.fits(other) for other in stated)
        and not known.has(Word(figure.words.split()[-1], 0, len(figure.words), False))
        for figure in units
    )


def _points_back(before: str, figure: Quantity | Moment) -> bool:
    """Return whether a number counts things that were told before, as in "the larger of the two"."""
    return (
        isinstance(figure, Quantity) and before.endswith("the ") and figure.words[:1].isalpha() and figure.written < 4
    )


def _compare_with_nearest(statement: str, clause: Clause, sentences: Sequence[str]) -> list[Objection]:
    """Return how a clause differs from all the clauses of the sources that are nearest to it."""
    near = find_nearest(clause, sentences)
    if not near:
        return []
    said = [(restate(clause.text, source.text), source.text) for source in near]
    wholes = [" ".join(sentences_of(source, sentences)) for source in near]
    found = _find_framing(statement, clause.text, wholes)
    denied = [
        has_denial_conflict(mine, theirs) or denies_more(mine, whole)
        for (mine, theirs), whole in zip(said, wholes, strict=True)
    ]
    opposed = [are_opposites(mine, theirs) and not is_converse(mine, theirs) for mine, theirs in said]
    if all(one != other for one, other in zip(denied, opposed, strict=True)):
        found.append(Objection(ObjectionKind.DENIED if denied[0] else ObjectionKind.OPPOSITE))
    if all(is_swapped(mine, theirs) for mine, theirs in said):
        found.append(Objection(ObjectionKind.TURNED_ROUND))
    if not is_hedged(statement) and all(drops_hedge(mine, theirs) for mine, theirs in said):
        found.append(Objection(ObjectionKind.HEDGED))
    return found


def _find_framing(statement: str, clause: str, wholes: Sequence[str]) -> list[Objection]:
    """Return why sentences that mention what a clause says do not state it: a condition, an exception, another time."""
    found: list[Objection] = []
    framings = [find_framing(restate(statement, whole), whole) for whole in wholes]
    if framings[0] and all(framings):
        found.append(framings[0])
    if all(find_exception(clause, whole) for whole in wholes):
        found.append(Objection(ObjectionKind.LEFT_OUT))
    if all(is_denied_as_a_whole(clause, whole) for whole in wholes):
        found.append(Objection(ObjectionKind.DENIED))
    if all(is_timed_otherwise(clause, whole) for whole in wholes):
        found.append(Objection(ObjectionKind.OTHER_TIME))
    return found


def find_nearest(clause: Clause, sentences: Sequence[str]) -> list[Clause]:
    """Return the clauses of the sources that share most words, names and figures with a clause."""
    # Each once: sentences that repeat a clause would be compared with it all together, once for each of them.
    sources = list(dict.fromkeys(source for sentence in sentences for source in read_clauses(sentence)))
    counts = [count_shared(clause, source) for source in sources]
    most = max(counts, default=0)
    near = [source for source, count in zip(sources, counts, strict=True) if most and count == most]
    frame = lay_along(clause.text, [source.text for source in near]) if len(near) > 1 else None
    return [source for source in near if source.text == frame.sentence] if frame else near


def sentences_of(source: Clause, sentences: Sequence[str]) -> list[str]:
    """Return the sentences that have a clause."""
    return [sentence for sentence in sentences if source in read_clauses(sentence)]
