"""Names, days and times in a query, as it spells them.

Two other readings differ for a reason. `ingest.enrich` has to know whether a name is a person or an organization,
which takes whole sentences and a gazetteer. `language.dates` reads only days and times that can be compared, while a
query also says "tomorrow" and "next week".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from ragstone.language.analyzer import STOP_WORDS
from ragstone.language.sentences import STARTERS

MOST_NAMES = 20
LONGEST_NAME = 6
"""Words of a name."""
_READ = 4000
"""Characters of a passage that are looked at."""
_MOST_PASSAGES = 10
_ASKING = "how what when where why who whose whom which is are was were do does did can could should will would"
QUESTION_WORDS = frozenset(_ASKING.split())
"""Words that questions begin with."""
_LONGEST_IDENTIFIER = 100
"""A longer word is no identifier; matching it would take time that grows faster than its length."""
_IDENTIFIER = re.compile(
    r"[A-Za-z$@][\w$@]*(?:(?:[./:#]|::|->)[\w$@-]+)+"  # hook.player.connected, @scope/package, Type::method
    r"|[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*"  # moduleControllerCreate
    r"|(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]\w*"  # ModuleController, HTTPServer
    r"|\w+_\w+"  # snake_case, UPPER_CASE
    r"|(?=\S*[A-Za-z])(?=\S*[0-9])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"  # SKU-12345, v2, iso9001
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_NTH = r"[0-3]?\d(?:st|nd|rd|th)?"
_DATE = re.compile(
    r"\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})"
    rf"|{_NTH} (?:of )?{_MONTH}(?:,? \d{{4}})?\b|{_MONTH} {_NTH}\b(?:,? \d{{4}})?|{_MONTH} \d{{4}}"
    rf"|(?:(?:this|next|last|every|on) )?{_DAY}(?: (?:morning|afternoon|evening|night))?"
    r"|(?:this|next|last) (?:week(?:end)?|month|year|morning|afternoon|evening|quarter|spring|summer|autumn|winter)"
    r"|(?:(?<=\bin )|(?<=\bsince )|(?<=\bby )|(?<=\bof ))(?:1[5-9]|20)\d\d"
    r"|today|tonight|tomorrow|yesterday|(?:1[0-2]|0?[1-9])(?::[0-5]\d)? ?[ap]m|(?:[01]?\d|2[0-3]):[0-5]\d)\b",
    re.I,
)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,80})[\"”“»]")
_WORD = re.compile(r"[^\s,;:!?()\"“”„«»]{1,100}")
_OPENING_WORDS = (
    "i'm i'd i've tell show give find compare list explain describe please hello hi hey dear thanks help need "
    "want looking let ok yes any search check buy order book reserve cancel"
)
_NOT_A_NAME = QUESTION_WORDS | STOP_WORDS | STARTERS | frozenset(_OPENING_WORDS.split())
_INNER = re.compile(r"(?<=[\w,;:)] )[A-Z][\w-]*")
"""A capital inside a sentence."""
_WORDS = re.compile(r"\w+")
_TOPIC = re.compile(r"(?<=[\w,] )[A-Z][\w'’-]{1,40}(?: (?:of |the )?[A-Z0-9][\w'’-]{0,40}){0,5}")
_RUN = re.compile(r"[A-Z][\w'’-]{0,30}(?: (?:[A-Z][\w'’-]{0,30}|\d{1,6}[A-Za-z]{0,3})){0,5}")


def is_identifier(word: str) -> bool:
    """Return whether a word is spelt like a name in a program, a path or a part number."""
    return len(word) <= _LONGEST_IDENTIFIER and _IDENTIFIER.fullmatch(word) is not None


def is_code(word: str) -> bool:
    """Return whether a word has a digit or is spelt like an identifier."""
    return any(letter.isdigit() for letter in word) or is_identifier(word)


def find_identifiers(text: str) -> list[str]:
    """Return the words that are spelt like names in a program, a path or a part number."""
    words = (match.group().rstrip(".'’") for match in _WORD.finditer(text))
    return [word for word in words if len(word) > 1 and is_identifier(word)]


def find_inner_names(text: str) -> list[str]:
    """Return words with a capital inside the sentences; none of a text In Title Case, where capitals say nothing."""
    found = [name for name in _INNER.findall(text) if len(name) > 1]
    return [] if 2 * len(found) > len(_WORDS.findall(text)) else found


def find_first_name(text: str) -> str:
    """Return the first name of several words or one that does not begin the text, or ""."""
    name = _TOPIC.search(text)
    return name.group() if name else ""


def find_spelt_dates(text: str) -> tuple[str, ...]:
    """Return days and times of a query as it spells them, in order, each once."""
    found = (" ".join(match.group().split()) for match in _DATE.finditer(text))
    return tuple(dict.fromkeys(islice(found, MOST_NAMES)))


def find_names(text: str) -> tuple[str, ...]:
    """Return quoted phrases, identifiers and runs of capitalised words; no dates, no first words of sentences."""
    bare = _DATE.sub(lambda match: "," * len(match.group()), text)
    quoted = [" ".join(match[1].split()) for match in _QUOTED.finditer(bare)]
    runs = _runs(_QUOTED.sub(" , ", bare))
    return tuple(dict.fromkeys(islice((*quoted, *runs), MOST_NAMES)))


def find_spelt_names(query: str, passages: Iterable[str]) -> tuple[str, ...]:
    """Return names of several words that passages write with capitals and the query has, as the passages spell them."""
    words = [match.group().rstrip(".").casefold() for match in _WORD.finditer(query)]
    said = {" ".join(part) for part in _parts(words)}
    found: dict[str, str] = {}
    for passage in islice(passages, _MOST_PASSAGES):
        for run in _RUN.finditer(passage[:_READ]):
            spelt = run.group().split(" ")
            if len(spelt) > 1 and not said.isdisjoint(map(" ".join, pairwise(map(str.casefold, spelt)))):
                name = next((name for name in map(" ".join, _parts(spelt)) if name.casefold() in said), "")
                found.setdefault(name.casefold(), name)
    return tuple(name for name in found.values() if name)[:MOST_NAMES]


def _runs(text: str) -> Iterator[str]:
    """Yield neighbouring words that are spelt like names."""
    run: list[str] = []
    end = -1
    for match in _WORD.finditer(text):
        word = match.group().rstrip(".").removesuffix("'s").removesuffix("’s")
        goes_on = run and text[end : match.start()] == " " and len(run) < LONGEST_NAME
        if run and not (goes_on and _belongs(word)):
            yield from _join_run(run)
            run = []
        if run or _begins(word):
            run.append(word)
        end = match.end()
    yield from _join_run(run)


def _begins(word: str) -> bool:
    if word.casefold() in _NOT_A_NAME or not any(letter.isalpha() for letter in word):
        return False
    return word[0].isupper() or is_code(word)


def _belongs(word: str) -> bool:
    """Return whether a word continues a name: another name, or a number."""
    return _begins(word) or word.isdigit()


def _join_run(run: list[str]) -> Iterator[str]:
    name = " ".join(run)
    if len(name) > 1:
        yield name


def _parts(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield neighbouring words that may be a name, the longest first; no name begins with "The"."""
    for count in range(min(len(words), LONGEST_NAME), 1, -1):
        for start in range(len(words) - count + 1):
            if words[start].casefold() not in _NOT_A_NAME:
                yield words[start : start + count]
