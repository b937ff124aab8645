"""Clauses, subjects and verbs of English sentences, as far as checks need them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal


def words_of(text: str) -> frozenset[str]:
    """Return the words that a text lists."""
    return frozenset(text.split())


BE = words_of("is are was were am")
HAVE = words_of("has have had")
MODALS = words_of("can could will would may might must should shall cannot do does did")
OWNING = words_of("the a an his her its their our my your")
"""A noun never stands right before one of these."""
QUANTIFYING = words_of("this these those some any no every each all both many few several most another either")
SUBJECTS = words_of("i he she it they we you there nobody everyone someone")
OBJECTS = words_of("them him us me itself themselves himself herself")
PREPOSITIONS = words_of(
    "of in on at by for with from to into onto over under above below between among through during before after "
    "about against across along around behind beside near off out up down since until till within without via per "
    "as than like despite beyond towards toward upon"
)
LINKS = words_of("and or but nor while whereas because if when who which that whose where unless although though")
ADVERBS = words_of(
    "also then often never always still now soon again already later sometimes only even just not too here today "
    "twice once thus therefore instead together away back ahead apart abroad online overseas downstream "
    "upstream worldwide nationwide"
)
NUMBERS = words_of(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty hundred "
    "thousand million noon midnight"
)
PASTS = words_of(
    "became began bit blew bore broke came chose drew drank drove ate fell flew forgot forgave froze gave grew knew "
    "lay rode rang ran rose saw shook shrank sang sank spoke sprang stole swam swore took tore threw underwent "
    "undertook went woke wore wove withdrew wrote arose overcame foresaw overtook mistook"
)
"""Finite wherever they stand."""
PARTICIPLES = words_of(
    "bent bought bound bred brought built burnt caught dealt dug fed felt fled fought found ground hung heard "
    "held hit kept laid led learnt left lent let lit lost made meant met paid put read said sent set shone shot "
    "shut slept slid sold sought spent split spread stood struck stuck swept swung taught thought told understood "
    "wept withstood won cost cut"
)
"""Finite, or not: a boat built in Oslo."""
PURE_PARTICIPLES = words_of(
    "arisen beaten begun bitten blown borne broken chosen drawn driven drunk eaten fallen flown forbidden foreseen "
    "forgiven forgotten frozen given gone grown hidden known mistaken overtaken proven ridden risen rung seen shaken "
    "shown shrunk spoken sprung stolen sung sunk sworn swum taken thrown torn undergone undertaken withdrawn woken "
    "worn woven written"
)
"""Never finite."""
AFTER_NOUNS = words_of("needed required used involved concerned named listed affected given born")
"""Participles that stand behind a noun without being its verb."""
VERBS = words_of(
    "abort accept accumulate achieve act activate add adjust admit adopt affect agree allocate allow analyze announce "
    "appear append apply arrange arrive ask assign associate assume attach attend avoid bake bear become begin "
    "believe belong bind bring build burn buy bypass calculate call cancel carry catch cause cease change choose "
    "clean clear climb close collect combine come communicate compare compile complete compress configure confirm "
    "connect consist consume contain continue contribute control convert cook correspond cost cover create cross cut "
    "deactivate deal decide declare decode decompress decrease decrypt define delete deliver demand deny depart "
    "depend deploy describe design destroy detach detect determine develop die differ dig direct disable discard "
    "discover distribute divide drink drive drop earn eat eliminate emit employ enable encode encrypt end enhance "
    "enjoy ensure enter erase establish evaluate examine exceed exclude execute exist expand expect expire explain "
    "express extend extract fail fall feed feel fetch fill find finish fit fix flow fly follow forbid form forward "
    "gain gather generate get give go grow handle happen hear heat help hide hire hold identify ignore implement "
    "improve include increase indicate induce inform inherit inhibit inject insert install interact intercept "
    "interpret interrupt introduce invest invite invoke involve iterate join keep kill know lack last launch lead "
    "learn leave lend let lie listen live load locate lock lose lower maintain make manage measure meet melt merge "
    "migrate mix move need negotiate notify obey obtain occupy occur offer omit open operate order organise organize "
    "override overwrite own paint parse pass pay perceive perform permit play postpone precede prefer prepare prepend "
    "preserve prevent print produce prohibit promote propagate protect prove provide publish pull push put quit raise "
    "reach react read receive recommend record recover redirect reduce refer refuse regulate reject release reload "
    "remain remember remove rename render rent repair replace represent require resemble restart restore restrict "
    "resume retain retrieve return revert revoke rewrite rise run sail save say see seem sell send separate serve set "
    "settle share shine show sign simulate sing sink sit skip sleep sound speak specify spend stand start state stay "
    "stop store study submit subscribe succeed suffer suggest supersede supply support suppress survive suspend swim "
    "synchronize take teach tell terminate think toggle touch train transform translate transmit transport travel "
    "treat truncate try turn understand uninstall unlock unmount use validate vary verify violate visit wait walk "
    "want warn wash watch wear weigh win wipe work write"
)
"""They settle what position leaves open (the pump stops, the harbour dues); others are told by form alone."""
PLURALS = words_of(
    "acts bears causes changes controls cooks costs covers cuts deals demands designs drinks drops ends forms "
    "heats increases decreases loads locks lowers measures needs offers orders paints passes plays prints records "
    "rents repairs returns rises runs sails shares signs sounds stands starts states stores studies supplies "
    "supports touches trains transports travels treats turns visits waits walks watches works"
)
"""Forms of verbs that may as well be plurals: behind an "and" they may go on with a list."""


Kind = Literal[
    "auxiliary",
    "determiner",
    "pronoun",
    "object",
    "preposition",
    "link",
    "adverb",
    "number",
    "past",
    "participle",
    "s",
    "name",
    "word",
]
"""A `past` is finite wherever it stands, a `participle` may be; an `s` is a verb or a plural."""


_VERBAL = re.compile(
    r"(?:\w{2,20}[iy]f(?:ies|ied|y)|\w{3}(?:is|at)(?:es|ed|e)|\w{3,20}iz(?:es|ed|e)"
    r"|\w{2,20}(?:duc|ceiv|quir|clud|solv|serv)(?:es|ed|e))$"
)
"""Endings that few nouns have."""
_TOKEN = re.compile(r"[^\W_][\w'’.-]{0,60}(?<![.'’-])")
_KINDS: tuple[tuple[frozenset[str], Kind], ...] = (
    (BE | HAVE | MODALS, "auxiliary"),
    (OWNING | QUANTIFYING, "determiner"),
    (SUBJECTS, "pronoun"),
    (OBJECTS, "object"),
    (PREPOSITIONS, "preposition"),
    (LINKS, "link"),
    (ADVERBS, "adverb"),
    (NUMBERS, "number"),
    (PASTS, "past"),
    (PARTICIPLES, "participle"),
)
_CLOSED = {word: kind for words, kind in reversed(_KINDS) for word in words}
"""The kind of each word that is listed; of one in two lists, that of the first."""
_PAST_FORMS = PASTS | PARTICIPLES | PURE_PARTICIPLES


@dataclass(frozen=True, slots=True)
class Token:
    """A word, where it stands, and what its form says."""

    word: str
    start: int
    end: int
    kind: Kind

    @property
    def is_nominal(self) -> bool:
        return self.kind in ("word", "s", "name", "number", "pronoun")


@lru_cache(512)
def tokenize(text: str) -> tuple[Token, ...]:
    """Return the words of a text in order."""
    return tuple(
        Token(match.group().lower(), *match.span(), _kind(match.group(), match.start() == 0))
        for match in _TOKEN.finditer(text)
    )


def _kind(written: str, first: bool) -> Kind:
    word = written.lower()
    if written == "May" and not first:
        return "name"
    return _CLOSED.get(word) or _open_kind(written, word, first)


def _open_kind(written: str, word: str, first: bool) -> Kind:
    if word.endswith(("n't", "n’t")):
        return "auxiliary"
    if word[0].isdigit():
        return "number"
    if written[0].isupper() and not first:
        return "name"
    if word.endswith("ly") and len(word) > 4:
        return "adverb"
    if word.endswith("ed") and len(word) > 3 and not word.endswith("eed"):
        return "participle"
    return "s" if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")) else "word"


def is_known_verb(word: str) -> bool:
    """Return whether a word is, by a list of frequent ones or by its ending, a verb in any of its finite forms."""
    return not _stems(word).isdisjoint(VERBS) or _VERBAL.match(word) is not None


def is_verb_form(word: str) -> bool:
    """Return whether a word is a known verb in a regular or an irregular form."""
    return word in _PAST_FORMS or is_known_verb(word)


def is_past_form(word: str) -> bool:
    """Return whether a word is a past tense or a participle."""
    regular = word.endswith("ed") and len(word) > 3 and not word.endswith("eed")
    return regular or word in _PAST_FORMS


def _stems(word: str) -> set[str]:
    """Return what a finite form may be a form of."""
    stems = {word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("d"), word.removesuffix("ed")}
    if word.endswith(("ies", "ied")):
        stems.add(f"{word[:-3]}y")
    if word.endswith("ed") and word[-3:-2] == word[-4:-3]:
        stems.add(word[:-3])
    return stems


Form = Literal["auxiliary", "past", "participle", "s", "base"]
_PLURAL = frozenset(("they", "we", "you", "i"))
_COUNTING = NUMBERS - words_of("one noon midnight")
"""A word behind one of these is counted, and no verb."""
_VERBAL_KINDS = ("auxiliary", "past", "participle")


@dataclass(frozen=True, slots=True)
class Verb:
    """A word that is the verb of its clause, surely or maybe."""

    place: int
    """Among the tokens."""
    token: Token
    form: Form
    sure: bool

    def agrees_with(self, other: Verb) -> bool:
        """Return whether it can share the subject of the other: arrives with leaves, arrive with must."""
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
        """Return whether both speak of the past, or neither."""
        return _is_past(self) == _is_past(other)


def _is_past(verb: Verb) -> bool:
    return verb.form in ("past", "participle") or verb.token.word in ("was", "were", "had", "did")


def first_verb(words: Sequence[Token], *, shared: bool = False) -> Verb | None:
    """Return the first verb of a clause, sure ones first; with `shared`, a verb that begins it."""
    if shared:
        place = next((n for n, word in enumerate(words) if word.kind != "adverb"), 0)
        return _verb_at(words, place, shared=True) if words else None
    end = next((n for n, word in enumerate(words) if n and word.word in LINKS), len(words))
    clause, first = words[:end], None
    for place in range(1, end):
        verb = _verb_at(clause, place, shared=False)
        if verb and verb.sure:
            return verb
        first = first or verb
    return first


def _verb_at(words: Sequence[Token], place: int, *, shared: bool) -> Verb | None:
    token = words[place]
    before = next((words[n] for n in range(place - 1, -1, -1) if words[n].kind != "adverb"), None)
    after = words[place + 1] if place + 1 < len(words) else None
    if before is None and not shared:
        return None
    if token.kind == "auxiliary":
        return None if before and before.word == "to" else Verb(place, token, "auxiliary", True)
    if before is not None and not before.is_nominal:
        return None
    has_object = after is not None and (after.word in OWNING or after.kind == "object" or after.word == "it")
    if token.kind in ("past", "participle"):
        sure = has_object or token.kind == "past" or _after_pronoun(before) or _acts(token, after, shared=shared)
        return Verb(place, token, token.kind, sure)
    known = is_known_verb(token.word) and not (shared and token.word in PLURALS)
    if after is not None and (after.kind in _VERBAL_KINDS or (after.word == "of" and not known)):
        return None
    sure = has_object or known or _after_pronoun(before)
    plural = before is not None and (before.kind == "s" or before.word in _PLURAL)
    counted = before is not None and before.word in _COUNTING
    if token.kind == "s" and not plural and not counted:
        led = shared or (place > 1 and words[0].kind in ("determiner", "name"))
        return Verb(place, token, "s", sure or (led and _has_noun(after, shared=shared)))
    if token.kind == "word" and (plural or before is None) and not token.word.endswith("ing"):
        return Verb(place, token, "base", sure)
    return None


def _has_noun(after: Token | None, *, shared: bool) -> bool:
    """Return whether a noun follows, as one hardly ever follows a plural: "wastes ink", "rents two offices"."""
    return after is not None and after.kind in (("word", "s", "number", "name") if shared else ("word",))


def _acts(token: Token, after: Token | None, *, shared: bool) -> bool:
    """Return whether a form such as "opened" is a verb by what follows: "dried fish" is a noun with its adjective."""
    if shared:
        return after is None or after.kind in ("preposition", "adverb", "number", "object", "determiner")
    return after is None and token.word not in AFTER_NOUNS


def _after_pronoun(before: Token | None) -> bool:
    return before is not None and before.kind == "pronoun"
