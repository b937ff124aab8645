"""Bare noun phrases ("return policy", "terms of service") told from descriptions ("something for dinner").

A noun phrase names a thing, and text about that thing most likely uses these words. A description has words that no
text about the thing needs: how it should be, whom it is for, what somebody wants to do with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.language.analyzer import STOP_WORDS, fold
from ragstone.language.function_words import FUNCTION_WORDS
from ragstone.language.grammar import words_of

MOST_WORDS = 5
JOINING = words_of("of and & the")
"""Function words that a name for a thing may have inside; an article, only in front."""
INDEFINITE = words_of(
    "something anything everything nothing someone anyone somebody anybody somewhere anywhere thing things stuff one "
    "ones kind sort ways idea ideas suggestions recommendations tips alternatives places people person whatever "
    "without like similar than very too really quite more most less least just only also again always never often "
    "instead together between under over before after during while into onto against around near about us them him"
)
"""Words of a description beside those that every sentence has."""
WANTING = words_of(
    "want wants wanted need needs needed looking searching recommend suggest tell show give help find explain describe "
    "compare choose prefer wish hoping trying please let lets make makes making get gets getting keep keeps stop avoid "
    "prevent stay be become go goes going come comes put take takes feel feels look looks works working broke fails "
    "failing happens tastes smells sounds seems suits fits helps saves lasts"
)
"""Verbs of a wish, and verbs that are hardly ever a part of a name."""
QUALITIES = words_of(
    "airy amazing authentic awesome bad beautiful beginner big bitter boring bright brilliant budget busy calm calming "
    "carefree casual charming cheap cheerful chic clean clever colourful colorful comfortable comfy convenient cool "
    "cosy cozy crazy creamy creative crisp crispy crunchy cute cuddly dainty dark decent delicate delicious different "
    "discreet dreamy durable dusty easy eccentric elegant energetic energising energizing exciting exotic expensive "
    "fabulous famous fancy fantastic fast fashionable festive feminine fine floral fluffy fresh friendly fruity fun "
    "funny gentle giant glamorous gloomy good gorgeous graceful grand great handy happy healthy hearty heavy hidden "
    "huge humorous impressive indulgent inexpensive innocent inspiring interesting intimate joyful juicy kind large "
    "lazy light lightweight lively long lovely loud lovable luxurious magical masculine massive memorable messy mild "
    "minimalist modern modest moody musky mysterious natural neat nice nostalgic nutritious odd old outdoorsy "
    "peaceful perfect picturesque playful pleasant plush posh practical pretty quaint quick quiet quirky rare "
    "refreshing relaxed relaxing reliable remote rich romantic rough rustic sad scary scenic sensual sexy shiny short "
    "silent silky simple sleek slim slow small smart smoky smooth soft soothing sophisticated sour sparkling special "
    "spicy spooky stable strange strong sturdy stunning stylish subtle summery sunny surprising sweet tasty tender "
    "thick thin thoughtful tidy timeless tiny tough trendy ugly unforgettable unique unusual upbeat uplifting useful "
    "versatile vibrant vintage warm warming weird wholesome wild wintry witty wonderful worthy young yummy zesty"
)
"""Adjectives that say how a thing should be rather than which thing it is."""
_NOUNS_IN_EST = words_of("conquest contest digest forest guest harvest interest latest manifest protest quest request")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|&")


def is_noun_phrase(words: Sequence[str], language: str = "") -> bool:
    """Return whether a few words of a query are a bare noun phrase; `language` is "" for English."""
    if not 1 < len(words) <= MOST_WORDS or not all(map(_WORD.fullmatch, words)):
        return False
    lowered = [fold(word).casefold() for word in words]
    if language:
        return not any(word in FUNCTION_WORDS.get(language, ()) for word in map(str.casefold, words))
    names = lowered[1:] if lowered[0] == "the" else lowered
    return names[-1] not in JOINING and not any(_describes(word, first=place == 0) for place, word in enumerate(names))


def _describes(word: str, *, first: bool) -> bool:
    if word in JOINING:
        return first or word == "the"
    if word in STOP_WORDS or word in INDEFINITE or word in WANTING or word in QUALITIES:
        return True
    if word.endswith("ly") and len(word) > 5 and word not in ("family", "monthly", "weekly", "yearly", "quarterly"):
        return not word.endswith(("ply", "tally"))
    return word.endswith("est") and len(word) > 4 and word not in _NOUNS_IN_EST
