"""The kind of thing that an English question asks for, and whether a text holds such a thing.

Only the question's own words tell its kind, so that a question in another language has none and nothing is preferred.
"""

from __future__ import annotations

import re
from typing import Literal

from ragstone.language.analyzer import analyze
from ragstone.language.dates import date_spans
from ragstone.language.grammar import is_known_verb, words_of
from ragstone.language.names import find_inner_names

AskedKind = Literal[
    "reason",
    "duration",
    "date",
    "time",
    "size",
    "default",
    "price",
    "number",
    "person",
    "place",
    "command",
    "setting",
    "contact",
    "list",
    "steps",
    "definition",
    "yes-no",
    "other",
]
STRICT: frozenset[AskedKind] = frozenset(
    ["duration", "date", "size", "price", "number", "person", "command", "setting", "contact"]
)
"""Kinds that a text without such a thing hardly answers."""
TIMED: frozenset[AskedKind] = frozenset(["time"])
"""Kinds that are often meant otherwise: "When is it written?" may ask for a condition."""
MEASURED: frozenset[AskedKind] = frozenset(["duration", "date", "size", "price", "number", "person"])
"""Kinds that a text without such a thing does not answer."""
_NOUNS: dict[AskedKind, str] = {
    "duration": r"timeout|time-out|interval|duration|period|delay|lifetime|time limit",
    "size": r"sizes?",
    "number": (
        r"maximum|minimum|limit|number|count|port|factor|percentage|threshold|price|cost|fee|amount|distance|majority"
        r"|score|ratio|speed|(?:exit|return|status|error) (?:status|code|value)"
    ),
    "place": r"director(?:y|ies)|folder|file|path|location|place|city|country",
    "command": r"command|tool|program|utility|subcommand|statement|script|call",
    "setting": (
        r"(?:option|setting|parameter|variable|flag|switch|directive|argument|keyword|attribute|field|property|key"
        r"|function|method|class|decorator|header|module|macro|signal|extension|privilege|permission|table|view|type"
        r"|format|exception|character|symbol|prefix|suffix|sequence)s?"
    ),
}
"""Nouns behind "which" and "what" that tell what is asked for."""
_NOUN = "|".join(f"(?P<{kind}>{nouns})" for kind, nouns in _NOUNS.items())
_OTHER = rf"(?!(?:{'|'.join(_NOUNS.values())})\b)[\w-]+"
_WHICH = re.compile(
    rf"\b(?:what|which(?! {_OTHER} {_OTHER} (?:on|at|in|from|with|under) ))\b"
    rf"(?:(?! (?:do|does|did)\b)[^?,;]){{0,40}}?\b(?:{_NOUN})\b",
    re.I,
)
"""The noun comes before what is asked of it: "What does timeout return?" asks for no timeout, and "Which service runs
on port 80?" for no port."""
_COMPOUND = re.compile(rf"[ ]+(?:{_NOUN})\b", re.I)
_PATTERNS: dict[AskedKind, str] = {
    "contact": (
        r"\bhow (?:do|does|can|could|should|may|must) (?:i|we|you|one|\w+s) (?:contact|get in touch with|get hold of"
        r"|(?:reach|call|phone|e-?mail|write to) (?:him|her|them|you|someone|somebody)\b"
        r"|reach (?:(?-i:[A-Z])\w+"
        r"|(?:the|an?|my|your|our) (?:[\w-]+ )?\w*(?:person|people|team|desk|support|staff|er|or|ist)\b))"
        r"|\b(?:what|which)\b[^?,;]{0,40}"
        r"\b(?:(?:tele)?phone numbers?|e-?mail address(?:es)?|contact (?:details|address))\b"
        r"|\bwhat number (?:do|should|can|must) (?:i|we|you) (?:call|ring|dial)\b"
    ),
    "price": (
        r"\bhow (?:much (?:do|does|did|will|would|is|are) [^?]{1,60}\bcosts?\b|expensive\b)"
        r"|^what (?:do|does|did|will|would) [^?]{1,80} costs?\b|^what (?:is|was) the price\b"
        r"|\bhow much (?:do|does|did|will|must|should|would) [^?]{1,40} (?:pay|charge)\b"
    ),
    "reason": (
        r"\bwhy\b|\bhow come\b|\bwhat (?:is|was) the (?:reason|purpose|point)\b|\bwhat causes\b|\bfor what reason"
    ),
    "definition": (
        r"^what (?:do|does|did) [^?]{1,80} "
        r"(?:do|mean|stand for|hold|contain|return|print|show|control|cause)\b(?! [a-z])"
    ),
    "duration": (
        r"\bhow (?:long|often|frequently|soon|quickly|old)\b(?! is the (?:name|line|string|key))"
        r"|\bhow much time\b|\bafter (?:what|which) time\b"
        r"|\bhow many (?:milli|micro)?(?:seconds|minutes|hours|days|weeks|months|years)\b"
    ),
    "date": (
        r"\b(?:what|which) (?:year|date|day|month)\b|\b(?:since|until|by) when\b|\bbirthday\b|\bwhen (?:was|were|did)\b"
    ),
    "time": r"\b(?:at )?what (?:time|hour)\b|^when (?:do|does|is|are|will|can|may)\b",
    "size": r"\bhow (?:large|big|wide|tall|heavy|deep)\b|\bhow much (?:memory|space|disk|room|data)\b",
    "number": (
        r"\bhow (?:many|much|far|high|low|fast)\b"
        r"|\b(?:what|which) (?:number|percentage|share|port|version|release|value|level|temperature|age|mode|code)\b"
    ),
    "person": (
        r"^(?:(?!\b(?:what|which|how|when|where|why)\b).){0,200}\bwho(?:m|se)?\b"
        r"|\b(?:what|which) (?:person|people|author|developer|maintainer|company|organi[sz]ation)\b"
    ),
    "place": r"\bwhere\b",
    "list": (
        r"\b(?:what|which) (?:\w+ )?(?:kinds|types|sorts|ways|things|values|options|steps|methods|levels|modes) "
        r"|\b(?:what|which) are\b|\blist (?:the|all)\b|\bname (?:the|all|two|three|four)\b"
        r"|\b(?:what|which) (?:two|three|four|five|six)\b"
        r"|^(?:in(?:to)? |by |of |on )?which (?:[\w-]+ ){0,2}[\w-]+(?<![sui])s (?:are|can|do|does|did|were|have)\b"
    ),
    "setting": r"\bwhat (?:do|should|must) i (?:set|add|pass|write|put|use)\b",
    "steps": r"\bhow (?:do|does|can|could|should|would|to|must|might)\b|\bwhat (?:do|should|must) i do\b|\bsteps\b",
}
_ASKED = tuple((kind, re.compile(pattern, re.I)) for kind, pattern in _PATTERNS.items())
_OTHERWISE: dict[AskedKind, str] = {
    "default": r"\bdefaults?\b",
    "definition": r"^what (?:is|are|does|do|happens)\b|\bdefine\b|\bmeaning of\b|\bmeant by\b|\bstands? for\b",
    "yes-no": r"^(?:is|are|was|were|do|does|did|can|could|should|will|would|has|have|must|may|am)\b",
}
_ELSE = tuple((kind, re.compile(pattern, re.I)) for kind, pattern in _OTHERWISE.items())
"""Kinds of questions that ask for nothing else."""
_ASKS_DEFAULT = re.compile(r"what (?:is|are) the (?:\w+ )?defaults?\b", re.I)
_NUMBER = (
    r"(?:(?<![\w/.-])\d+(?:[.,]\d+)*|\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen"
    r"|twenty|thirty|forty|fifty|sixty|ninety|hundred|thousand|million|half|twice|unlimited|no limit)\b"
    # "one of them", "once it has started" and "this one" count nothing.
    r"|(?<!\bthis )(?<!\bthat )(?<!\bthe )(?<!\beach )(?<!\bany )(?<!\bno )\bone\b"
    r"(?! (?:of|or|can|may|must|should|that))|\bonce\b(?= (?:an?|per|every|each|in)\b))"
)
_WHAT_DAYS = r"(?:(?:working|business|calendar|consecutive|full|whole|more|further|additional)[ -])?"
_TIME = r"(?:(?:milli|micro|nano)?seconds?|minutes?|mins?|hours?|days?|weeks?|months?|years?|[mun]?s|ms|min|hr?s?|d)\b"
_IN_UNITS = r"(?:(?:milli|micro)?seconds?|secs?|ms|minutes?|hours?|days?)"
_MONEY = (
    r"euros?|dollars?|pounds?|pence|cents?|francs?|yen|yuan|won|rupees?|crowns?|kron(?:er|or|a|e)|zlotys?|rou?bles?"
    r"|pesos?|reais|rand|liras?|dirhams?|riyals?|shekels?|baht|shillings?|credits?|coins?|tokens?|eur|usd|gbp|chf"
)
_BY_DEFAULT = r"\bdefaults?\b(?: value)?(?: is| to)?[ :=(`*\"]{1,4}\d"
"""The default of an entry that names its unit before: "Seconds to wait.", and then "Default: 90"."""
_HELD: dict[AskedKind, re.Pattern[str]] = {
    "reason": re.compile(
        r"\b(?:because|since|so that|in order to|due to|as a result|otherwise|therefore|thus|hence|reasons?|owing to"
        r"|avoids?|prevents?|ensures?|allows?|means|causes?|protects?|"
        r"to (?:avoid|prevent|ensure|allow|make|keep|protect|reduce|improve|save))\b",
        re.I,
    ),
    "duration": re.compile(
        rf"{_NUMBER}[ -]?{_WHAT_DAYS}{_TIME}"
        r"|\b(?:(?:milli|micro)?seconds?|secs?|minutes?|hours?|days?)\b[^.!?\n]{0,80}"
        r"\b(?:defaults?|is|are|to)\b[ :=(]{1,3}\d"
        rf"|\b{_IN_UNITS}\b[^!?]{{0,80}}{_BY_DEFAULT}"
        r"|\b(?:hourly|daily|weekly|monthly|yearly|annually|forever|indefinitely|immediately"
        r"|every (?:second|minute|hour|day|week|month|year|time)|an hour|a (?:second|minute|day|week|month|year)|never"
        r"|no timeout)\b",
        re.I,
    ),
    "date": re.compile(
        r"\b(?:1[5-9]|20)\d\d\b|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b"
        r"|\b(?:version|release|since) v?\d",
        re.I,
    ),
    "time": re.compile(
        r"\b\d{1,2}(?::\d\d\b| ?[ap]\.?m\b)"
        r"|\bat (?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
        r"|\b(?:1[5-9]|20)\d\d-\d\d-\d\d\b"
        r"|\b(?:noon|midnight|o'clock|morning|afternoon|evening|night"
        r"|week(?:day|end)s?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b",
        re.I,
    ),
    "size": re.compile(
        rf"{_NUMBER}[ -]?(?:[kmgt]i?b?|bytes?|bits?|characters?|chars?|octets?|pages?|blocks?|lines?|rows?|entries"
        r"|(?:kilo|mega|giga|tera)bytes?|pixels?|percent|%|m|km|kg|metres?|meters?|feet|inches|bp)\b|\b\d+%"
        r"|\b(?:size|length|defaults?|bytes?|bits?|characters?|lines?)\b[^.!?\n]{0,60}"
        r"\b(?:defaults?|is|are|to)\b[ :=(]{1,3}\d"
        rf"|\bdefaults? to \d|\b(?:bytes|[KMG]B|lines|characters|pixels)\b[^!?]{{0,80}}{_BY_DEFAULT}",
        re.I,
    ),
    "price": re.compile(
        rf"[$€£¥₹] ?\d|{_NUMBER} ?(?:[$€£¥₹]|(?:{_MONEY})\b)"
        r"|\b(?:eur|usd|gbp|chf) ?\d|\bfree(?: of charge\b| for\b|(?! \w))"
        r"|\bno (?:extra |additional )?(?:charge|cost|fee)\b"
        rf"|\b(?:costs?|prices?|fees?|rates?|charges?)\b[^.!?\n]{{0,40}}{_NUMBER}"
        rf"|{_NUMBER}[^.!?\n]{{0,20}}\b(?:costs?|prices?|fees?)\b",
        re.I,
    ),
    "number": re.compile(_NUMBER, re.I),
    "default": re.compile(r"\b(?:defaults?|initially|unless|out of the box|if (?:not|un)\w*)\b", re.I),
    "place": re.compile(
        r"(?<![\w.-])[~/.]?/?[\w.-]{1,60}/[\w.-]|\b\w+\.[a-z]{1,5}\b"
        r"|\b(?:in|under|at|on|inside|within|to) (?:the|your|a|an)\b"
        r"|\b(?:director(?:y|ies)|folder|file|path|located|stored|found)\b",
        re.I,
    ),
    "setting": re.compile(
        r"\w_\w|(?<!\w)--?[a-z]|`[^`]+`|\b[A-Z]{3,}\b|\b\w+\(\)|\b[a-z]+[A-Z]\w|\w\.[a-z]\w*\b|[\"“'‘][\w$@.#-]{1,60}[\"”'’]"
        r"|<[a-z]|\w=|@\w|\$\w|\bF\d{1,2}\b|\b(?:[Cc]trl|[Aa]lt|[Ss]hift|[Ee]sc|[Tt]ab|[Ee]nter|[Rr]eturn)\b"
    ),
    "command": re.compile(
        r"`[^`]+`|(?<!\w)--?[a-z]|\b[a-z]+[-_][a-z]+\b|\b[A-Z]{3,}\b|\$ |\b(?:run|use|type|call|execute)\b"
    ),
    "contact": re.compile(
        r"\w@\w|\b(?:https?://|www\.)|(?<![\w.,/-])\+?\(?\d(?:[ ()/-]{0,2}\d){5,14}(?![\w/-])"
        r"|\b(?:phone|call|ring|dial|text|write to|e-?mail|mailing list|ticket|forum|chat)\b",
        re.I,
    ),
    "list": re.compile(r":\s*\n|,[^,.]{1,80}(?:,| and | or )|\b(?:both|either)\b", re.I),
    "steps": re.compile(
        r"\b(?:use|using|used|run|set|call|type|enter|install|add|create|click|press|edit|specify|pass|choose|select"
        r"|open|start|stop|remove|delete|configure|enable|disable"
        r"|you (?:can|must|should|need|have)|by \w+ing)\b|^\W{0,3}\d+[.)]",
        re.I,
    ),
    "definition": re.compile(
        r"\b(?:is|are|means?|refers? to|stands? for|specif(?:y|ies)|determines?|controls?|sets?|defines?|describes?"
        r"|causes?|used (?:to|for|as)|enables?|allows?|represents?|contains?|returns?|prints?|shows?)\b",
        re.I,
    ),
}
_UNCHANGED = re.compile(
    r"(?<!than the )(?<!of the )\bdefaults?\b|\bout of the box\b"
    r"|\bunless (?:i|you|we|told|configured|set|otherwise)\b|\bif nothing is\b"
    r"|\b(?:if|when) (?:i|you|we) (?:\w+ ){1,3}(?:nothing|no|none)\b|\bif (?:i|you|we) do(?:n't| not)\b",
    re.I,
)
_HOW_MANY = re.compile(r"\bhow (?:many|much)\b", re.I)
_COUNTS_NOTHING = re.compile(
    r"\b(?:versions?|v\.?|releases?|rev(?:ision)?s?|editions?|sections?|chapters?|articles?|clauses?|paragraphs?|figures?|tables?"
    r"|appendix|annex|schedule|pages?|steps?|parts?|phases?|no\.|nr\.|issues?) ?#?\d+(?:\.\d+)*\b"
    r"|§+ ?\d+(?:\.\d+)*|\bv\d+(?:\.\d+)*\b|\b\d+(?:\.\d+){2,}\b|^\s*(?:\d{1,3}[.)]|\d+(?:\.\d+)+)\s+(?=[A-Z\"“][a-z])",
    re.I | re.M,
)
"""Numbers of versions, editions, sections and the like."""
_COUNTED = re.compile(r"\bhow many (?:of (?:the|its|their|his|her|these|those) )?((?:[a-z][\w-]* ){1,3})", re.I)
_NOT_COUNTED = words_of(
    "does do did is are was were can may will has have must should could would go goes of in at with to by per on"
)
_COUNTS = re.compile(rf"{_NUMBER}|\b(?:no|several|any)\b", re.I)
_COUNT_WORDS = re.compile(r"[\w',.-]{1,60}")
_WORDS_BETWEEN = 4
"""A number counts a noun that is not further behind it."""
_ASKS_PLACE = re.compile(
    r"\b(?:which|what) (?:city|town|village|country|state|university|department)\b|^where (?:was|were|did)\b", re.I
)
_NAMES_PLACE = re.compile(r"\b(?:in|at|near|of|from) (?:the )?([A-Z][a-z]+)")
_ASKS_WHETHER = re.compile(
    r"(?:^|[,;] )(?:is|are|was|were|do|does|did|can|could|should|will|would|has|have|must|may|am) ", re.I
)
_SETTLES = re.compile(
    r"\b(?:not|never|no|none|cannot|only|unless|must|always|able|unable|impossible|allowed|permitted|supports?|supported"
    r"|prohibited|ignored|yes|optional|required|mandatory)\b|n['’]t\b",
    re.I,
)
_ACRONYM = re.compile(r"(?<!\bby )(?<!\bfrom )\b[A-Z]{2,5}\b")
_FULL_NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z]\.?| (?:van|von|de|der|da)){0,3} ([A-Z][a-z]+)\b")
_SENTENCE_WORD = re.compile(
    r"(?:The|This|That|These|Those|An?|In|If|For|When|On|At|By|To|From|With|Use|See|Note|All|Each|Every|No|Your|Its) "
)
_COMPARES = re.compile(
    r"(?<!at )\b(?:most|least|best|worst|same|differ(?:s|ent|ence)?|compared?"
    r"|(?:cheap|long|short|high|low|larg|small|bigg|great|few|fast|slow|quick|old|young|new|heavi|light|strong|weak|near"
    r"|wid|narrow|deep|clos|thick|thinn|hott|cold|busi|tall|hard|easi|saf|rich|poor|earli|lat)est)\b",
    re.I,
)
_LETTERS = re.compile(r"[^\W\d_]+")
_PEOPLE = words_of(
    "name names who person people contact contacts team teams staff member members lead responsible by author authors "
    "department assignee representative chair president secretary accountable"
)
_LONGEST = 4000
"""Characters of a text that are looked at."""


def find_asked_kind(question: str) -> AskedKind:
    """Return the kind of thing that a question asks for; "other" where its words do not tell."""
    asked = " ".join(question.split())[:_LONGEST]
    found = [(match.start(), kind) for kind, pattern in _ASKED if (match := pattern.search(asked))]
    if (which := _WHICH.search(asked)) is not None:
        found.append((which.start(), _find_noun(asked, which)))
    if found:
        # What a question begins with is what it asks for: "Which command shows how many …" asks for a command.
        kind = min(found, key=lambda one: one[0])[1]
        return "default" if kind not in MEASURED | TIMED and _ASKS_DEFAULT.match(asked) else kind
    return next((kind for kind, pattern in _ELSE if pattern.search(asked)), "other")


def _find_noun(asked: str, which: re.Match[str]) -> AskedKind:
    """Return the kind of the noun behind "which": of several side by side, as in "key size", the last one tells."""
    while (after := _COMPOUND.match(asked, which.end())) is not None:
        which = after
    return next(kind for kind in _NOUNS if which[kind])


def holds_kind(kind: AskedKind, text: str, question: str = "") -> bool:
    """Return whether a text holds a thing of the kind; what the question says itself is no answer to it."""
    known = {word.strip(".,;:?!'\"()") for word in question.casefold().split()}
    if kind == "person":
        return any(name.casefold() not in known for name in _find_people(text[:_LONGEST]))
    pattern = _HELD.get(kind)
    if pattern is None:
        return True
    read = text[:_LONGEST]
    if kind == "number" and _HOW_MANY.search(question[:_LONGEST]):
        read = _blank_labels(read)
    found = (match.group().casefold() for match in pattern.finditer(read))
    return any(kind not in MEASURED or not known.issuperset(words.split()) for words in found)


def names_people(column: str) -> bool:
    """Return whether the name of a column says that people or teams stand in it: "Contact", "Owner", "Approved by"."""
    return any(word in _PEOPLE or _is_doer(word) for word in _LETTERS.findall(column.lower()))


def _is_doer(word: str) -> bool:
    """Return whether a word is somebody who does what a verb says: owner, auditor."""
    one = word.removesuffix("s")
    return one.endswith(("er", "or")) and any(is_known_verb(root) for root in (one[:-2], one[:-1]))


def _blank_labels(text: str) -> str:
    """Return a text without the numbers that count nothing: dates, and those of versions, sections and the like."""
    for (start, end), _ in reversed(date_spans(text)):
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return _COUNTS_NOTHING.sub(" ", text)


def _find_people(text: str) -> list[str]:
    """Return the capitalised words within sentences, and the last word of names that have a given name before it."""
    full = (match[1] for match in _FULL_NAME.finditer(text) if not _SENTENCE_WORD.match(match[0]))
    return [*find_inner_names(_ACRONYM.sub("", text)), *full]


def find_comparing(question: str) -> str:
    """Return the word by which a question compares things, "cheapest" or "same"; "" where it does not."""
    found = _COMPARES.search(question[:_LONGEST])
    return found.group().lower() if found else ""


def find_counted(question: str) -> str:
    """Return the term of what "How many …" counts, or ""."""
    counted = _COUNTED.search(f"{question[:_LONGEST]} ".replace("?", " "))
    words = counted[1].lower().split() if counted else []
    verbs = (n for n, word in enumerate(words) if word in _NOT_COUNTED or (n and is_known_verb(word)))
    end = next(verbs, len(words))
    return next(iter(analyze(words[end - 1])), "") if end else ""


def counts(noun: str, text: str) -> bool:
    """Return whether a number in a text stands right before a noun, which is given as its term."""
    words = _COUNT_WORDS.findall(text[:_LONGEST]) if noun else []
    return any(
        noun in analyze(word)
        for place, number in enumerate(words)
        if _COUNTS.match(number)
        for word in words[place + 1 : place + 1 + _WORDS_BETWEEN]
    )


def asks_for_named_place(question: str) -> bool:
    """Return whether a question asks for a place on the map or an institution, and not for a file."""
    return _ASKS_PLACE.search(question[:_LONGEST]) is not None


def names_place(text: str, question: str = "") -> bool:
    """Return whether a text says that something is in, at or near what has a name that the question does not have."""
    asked = question.casefold()
    return any(match[1].casefold() not in asked for match in _NAMES_PLACE.finditer(text[:_LONGEST]))


def asks_for_default(question: str) -> bool:
    """Return whether a question asks what holds as long as nobody changes it."""
    return _UNCHANGED.search(question[:_LONGEST]) is not None


def asks_whether(question: str) -> bool:
    """Return whether a question, or what stands in it behind a comma, is answered by yes or no."""
    return _ASKS_WHETHER.search(question[:_LONGEST]) is not None


def settles(text: str) -> bool:
    """Return whether a text denies, demands or allows something."""
    return _SETTLES.search(text[:_LONGEST]) is not None
