"""A unit read with what it leaves out: the term of its entry, the heading or the sentence that names its subject."""

from __future__ import annotations

import re
from dataclasses import replace

from ragstone.answer.quotes import caption
from ragstone.answer.units import AnswerUnit
from ragstone.answer.verify.appositions import is_stated_in_passing
from ragstone.answer.verify.conditions import strong_part
from ragstone.answer.verify.shares import Context
from ragstone.language.grammar import first_verb, tokenize
from ragstone.language.vocabulary import Word, content_words, read_vocabulary

_PATH = re.compile(r"[/.:_?=&#-]+")
_LONGEST, _LONGEST_LEAD, _LONGEST_ABOVE = 1000, 200, 600
_POINTS_BACK = re.compile(
    r"^(?:it|this|they|these)(?= (?:is|was|are|were|has|had|can|cannot|may|must|should|will|did|[a-z]{3,20}s|also)\b)"
    r"|\b(?:this|the|such an?) (?:parameter|option|setting|variable|command|role|field|type|value|argument|directive"
    r"|keyword|function|hook|file|method|mode|flag|feature|module|release|version|attribute|header|property|program"
    r"|tool|utility|script|driver|daemon|server|format|plugin|package|library)\b",
    re.I,
)
_CONNECTIVE = re.compile(
    r"^(?:in (?:particular|other words|addition|general|fact|short)|for (?:example|instance)|however|also|thus"
    r"|therefore|hence|moreover|furthermore|note that|note:|of course|likewise|similarly|finally|unfortunately),?\s",
    re.I,
)
"""Words that join a sentence to the one before it and say nothing themselves."""
_LABELLED = re.compile(r"[^:\n]{1,60}: \S[^\n]*[^.!?\s]$")
_TOPIC_NAMES = r"[\w.+-]{1,40}(?:['’]s)?(?:\s[\w.+-]{1,40}(?:['’]s)?){0,3}"
_TOPIC = re.compile(
    rf"^(?:in|with|for|under|on|according to|by)\s(?P<lead>{_TOPIC_NAMES}),\s"
    r"|\s(?:in|with)\s(?:the\s)?(?P<behind>[\w.+-]{1,40}(?-i:\s[A-Z][\w.+-]{0,40})?)(?=[\s,.;:)]|$)"
    r"|(?<![\w.+-])(?P<owner>[\w.+-]{1,40})['’]s\s",
    re.I,
)
_NUMBER = re.compile(r"\d+")
_MONTH = re.compile(
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?(?: \d{1,2}(?:st|nd|rd|th)?\b)?(?=:|,? -)",
    re.I,
)
"""The beginning of a line of a chronicle that leaves out the year."""
_YEAR = re.compile(r"(?:^|[\n>] ?)(?:in )?(?P<year>(?:1[5-9]|20)\d\d)[:.]?\s{0,9}$", re.I)
_NOUN = re.compile(r"\s(?P<noun>[a-z]{3,30})\b")
_SUBJECT_WITHIN = 20
_LONGEST_SUBJECT = 80


def read_text(unit: AnswerUnit) -> str:
    """Return the words of a unit in one line; the term of an entry is put before what is said of it."""
    if unit.kind != "entry":
        return _add_year(_CONNECTIVE.sub("", " ".join(unit.text.split()), count=1), unit)
    term, _, body = unit.text.partition("\n")
    return f"{term.strip()}: {' '.join(body.split())}" if body.strip() else term.strip()


def _add_year(text: str, unit: AnswerUnit) -> str:
    """Return a line that begins with a month with the year that stands over it: "May: …" under "1998"."""
    month, year = _MONTH.match(text), _YEAR.search(unit.heading.text if unit.heading else unit.quote.hit.section)
    return f"{month.group()} {year['year']}{text[month.end() :]}" if month and year else text


def read_context(unit: AnswerUnit) -> Context:
    """Return what stands over a unit: titles and the name of the file, its term and lead, the sentences before it."""
    hit = unit.quote.hit
    entry, lead = [_read_above(unit)], ""
    if unit.quote.head is not None:
        entry.append(caption(unit.quote.head))
    elif unit.term is None and unit.heading is None and unit.kind != "entry":
        lead = hit.text[:_LONGEST].lstrip().split("\n", 1)[0].split(". ", 1)[0][:_LONGEST_LEAD]
    before = dict.fromkeys(quote.text for quote in (unit.topic, unit.before) if quote is not None)
    told = tuple(" ".join(text[:_LONGEST].split()) for text in before)
    return Context(f"{unit.quote.headings}\n{_PATH.sub(' ', hit.uri)}", "\n".join(entry), told, lead)


def _read_above(unit: AnswerUnit) -> str:
    """Return what stands right over a unit; of lines that all give a label and a value, none is about the next."""
    if unit.heading is not None and _LABELLED.match(unit.heading.text) and _LABELLED.match(unit.text):
        unit = replace(unit, heading=None)
    return unit.above[:_LONGEST_ABOVE]


def name_subject(claim: str, unit: AnswerUnit, text: str) -> str:
    """Return the words of a unit with the names of a claim that stand over it, where the unit itself leaves them out.

    "The default is 3." in the entry of `timeout` is read as "timeout: The default is 3.", and "This was the first" as
    what the sentence before speaks of. A unit that begins with a name of its own leaves nothing out. One that says the
    claim in passing, "the pilot, Ida Sole", says that, under whatever condition it says the rest.
    """
    if is_stated_in_passing(claim, text):
        return claim
    own, above = read_vocabulary(text), read_vocabulary(read_context(unit).named)
    names = [word for word in content_words(claim) if word.is_name and not own.has(word)]
    pointing = _POINTS_BACK.search(text)
    if names and pointing and not pointing.start() and unit.before is not None:
        subject = _find_subject(unit.before.text)
        if all(map(read_vocabulary(subject).has, names)):
            return subject + text[pointing.end() :]
    verb = first_verb(tokenize(claim))
    # "Supply Agreement" over a sentence does not make it one about the Supplier.
    known = [word for word in names if word.folded in above.words]
    for word in list(known):
        named = _name_thing(word, claim, text)
        if named != text:
            text = named
            known.remove(word)
    front, behind = (
        " ".join(
            dict.fromkeys(word.text for word in known if (verb is None or word.start < verb.token.start) == before)
        )
        for before in (True, False)
    )
    text = _put_behind(text, behind, claim) if behind else text
    if not front or _begins_with_name(text):
        return text
    return text[: pointing.start()] + front + text[pointing.end() :] if pointing else f"{front}: {text}"


def _name_thing(name: Word, claim: str, text: str) -> str:
    """Return a text with a name before the noun that follows it in a claim: "the sensor" as "the Aurora sensor"."""
    noun = _NOUN.match(claim, name.end)
    thing = re.search(rf"\b(?:the|this|that|these|those|our|its)\s(?={noun['noun']}\b)", text, re.I) if noun else None
    return f"{text[: thing.end()]}{name.text} {text[thing.end() :]}" if thing else text


def _put_behind(text: str, names: str, claim: str) -> str:
    """Return a text with names behind the part that a claim is about: what "but" begins is about something else."""
    part = strong_part(claim, text)
    before, found, after = text.partition(part)
    if not found:
        before, part, after = "", text, ""
    return f"{before}{part.rstrip('.')} ({names}){after or '.'}"


def _find_subject(sentence: str) -> str:
    """Return what stands before the verb of a sentence, or ""."""
    verb = first_verb(tokenize(sentence[:_LONGEST]))
    subject = sentence[: verb.token.start].strip() if verb else ""
    return subject if len(subject) <= _LONGEST_SUBJECT else ""


def _begins_with_name(text: str) -> bool:
    return any(word.is_name and word.start <= _SUBJECT_WITHIN for word in content_words(text)[:2])


def drop_topic(claim: str, sentence: str, titles: str) -> str:
    """Return a claim without the names that stand in the titles over a sentence and not in the sentence."""
    over, own = read_vocabulary(titles), read_vocabulary(sentence)

    def drop(phrase: re.Match[str]) -> str:
        said = next(filter(None, phrase.groups()))
        words = content_words(f"a {said}")
        if not words or not all(over.has_itself(word) and not own.has(word) for word in words):
            return phrase.group()
        if not set(_NUMBER.findall(said)) <= set(_NUMBER.findall(titles)):
            return phrase.group()
        return "the " if phrase["owner"] else ""

    return _TOPIC.sub(drop, claim)
