"""Where a query is to be looked for, and how deep: decided by its words alone, in microseconds.

Small talk, sums and bare follow-ups need no search. What changes from day to day is asked of the web too, where
there is one. A few words are a cheap search, a comparison or a question of many parts a deep one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragstone.core.types import Mode, RouteKind
from ragstone.language.analyzer import analyze

LONGEST_READ = 1000
"""Characters that are looked at: what a longer text is about does not depend on its end."""
LONGEST_TALK = 80
MOST_SIMPLE_TERMS = 3
MOST_SIMPLE_WORDS = 6
LEAST_COMPLEX_WORDS = 25

_TALK = (
    r"(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|night|day))(?: (?:there|all|everyone|again))?"
    r"|(?:many )?(?:thanks|thank you|thx|cheers)(?: (?:a lot|so much|very much|again))?"
    r"|(?:good ?bye|bye|bye bye|see you|see you (?:later|soon|tomorrow)|take care)"
    r"|how are you(?: doing)?(?: today)?|how is it going|nice to meet you|you are welcome|who are you|what are you"
    r"|what is your name|(?:tell|say) me a joke|(?:that is|that's)? ?(?:ok|okay|great|cool|nice|perfect|fine|awesome)"
    r"|yes|yes please|no|no thanks|sure|got it|i see|all right|alright|never mind|please|lol"
)
_FOLLOW_UP = (
    r"why(?: not)?|how so|and|and then|so|then|go on|continue|please continue|more|more please|tell me more|say more"
    r"|what else|anything else|explain(?: (?:that|it|this|more))?|elaborate|(?:summarize|shorten)(?: (?:that|it))?"
    r"|shorter|again|repeat(?: (?:that|it))?|say that again|really|are you sure|what do you mean|for example|such as"
)
SMALL_TALK = re.compile(f"(?:{_TALK})(?: (?:{_TALK}))?")
FOLLOW_UP = re.compile(_FOLLOW_UP)
ASKS_FOR_SUM = re.compile(
    r"(?:what is|what's|calculate|compute|how much is) [-\d.,()+*/×÷^% ]*\d ?[-+*/×÷^%] ?\(?\d[-\d.,()+*/×÷^% ]*"
)
# A date, a range of years or a part number is no sum: `-` and `/` are one only where a sum is asked for.
BARE_SUM = re.compile(r"[-\d.,()+*/×÷^% ]*\d ?[+*×÷^] ?\(?\d[-\d.,()+*/×÷^% ]*=?")
TIMELY = re.compile(
    r"\b(?:today|tonight|yesterday|tomorrow|latest|newest|breaking|nowadays|right now|as of now|news|headlines"
    r"|this (?:week|weekend|month|year|morning|afternoon|evening|season)|weather(?: forecast)?"
    r"|(?:current|live|today's) (?:price|rate|exchange rate|version|score|status|stock|weather|events?)s?"
    r"|(?:stock|share) prices?|exchange rates?|price now)\b|\bnow\W*$"
)
SEVERAL_SIDES = re.compile(
    r"\b(?:compare|comparison|compared|versus|vs|differences?|differ|pros and cons|advantages|disadvantages"
    r"|trade-?offs?|relationship|relate|similarities|on the one hand|step by step)\b"
)
QUESTION_WORD = re.compile(r"\b(?:how|what|when|where|why|who|which)\b")


@dataclass(frozen=True, slots=True)
class Route:
    """Where to look, in which mode (None leaves it as it is), and why."""

    kind: RouteKind
    mode: Mode | None = None
    reason: str = ""


def route(query: str, *, web: bool = False) -> Route:
    """Decide by the words; `web` says whether the web can be asked."""
    words = " ".join(query.casefold().replace("’", "'").split())[:LONGEST_READ]
    if reason := _needs_nothing(words):
        return Route("none", reason=reason)
    if web and TIMELY.search(words):
        return Route("web", reason="it asks for what changes from day to day")
    return Route("retrieve", *_depth(words))


def _needs_nothing(words: str) -> str:
    if len(words) > LONGEST_TALK:
        return ""
    bare = " ".join(re.sub(r"[!?.,;:…\"()]+", " ", words).split())
    if not bare or SMALL_TALK.fullmatch(bare):
        return "small talk" if bare else ""
    if FOLLOW_UP.fullmatch(bare):
        return "a follow-up with nothing to look for"
    sum_ = words.rstrip("? =")
    return "a sum" if BARE_SUM.fullmatch(sum_) or ASKS_FOR_SUM.fullmatch(sum_) else ""


def _depth(words: str) -> tuple[Mode | None, str]:
    count = words.count(" ") + 1
    asked = words.count("?") > 1 or len(QUESTION_WORD.findall(words)) > 1
    if count >= LEAST_COMPLEX_WORDS or asked or SEVERAL_SIDES.search(words):
        return "thorough", "it has several sides"
    if count <= MOST_SIMPLE_WORDS and len(analyze(words)) <= MOST_SIMPLE_TERMS:
        return "fast", "a few words"
    return None, ""
