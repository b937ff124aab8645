"""Analysis of a customer's message: what it asks for, the names and days in it, and the sources that can know.

The words are those of English. A message in another language is a question for all sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from ragstone.agents.service.settings import AgentConfiguration
from ragstone.core.agents.replies import Intent
from ragstone.core.search import QueryAnalysis, QueryType, SourceKind
from ragstone.core.shop.slots import zone_of
from ragstone.language.analyzer import analyze
from ragstone.language.dates import find_moments
from ragstone.language.detector import language_of
from ragstone.language.names import find_spelt_dates
from ragstone.query.routing.analyse import LONGEST_READ, analyse, route
from ragstone.settings.retrieval import VocabularySettings

DAYS_AHEAD = 7
"""Days from today on that are looked at where a message names none."""
MOST_DAYS = 31

_HOW = re.compile(r"^(?:please )?(?:how (?:do|can|to|does|should|may)|where do|can i cancel|do i need)\b")
_AVAILABILITY = re.compile(
    r"\b(?:when (?:can|could|may) i (?:book|come|get|have|see|make)"
    r"|(?:book|reserve|schedule|make) (?:me )?(?:an?|my|the|for|in)\b"
    r"|(?:i(?:'d| would) like|i want|can i|could i) (?:to )?(?:book|reserve|schedule)"
    r"|appointments?|slots?|free times?|openings?\b(?! hours| times)|next (?:free|available)"
    r"|when (?:is|are) (?:[\w-]+ ){1,6}(?:free(?! of| shipping| delivery)|available)"
    r"|(?:available|free|availability)(?: \w+)? (?:on|at|for|this|next|today|tomorrow|tonight|monday|tuesday|wednesday"
    r"|thursday|friday|saturday|sunday))\b"
)
_SERVICES = re.compile(
    r"\b(?:what|which|list|show|all|any|other)\b[^.?!]{0,40}\b(?:services|treatments|appointments can|sessions)\b"
)
_PRODUCTS = re.compile(
    r"\b(?:what|which|list|show|all)\b[^.?!]{0,30}\b(?:products|items|articles)\b(?! guide)|\bwhat do you sell\b"
)
_PRICE = re.compile(
    r"\b(?:how much|prices?|costs?|how expensive|in stock|out of stock|sold out|how many [\w ]{1,40}left"
    r"|still available)\b"
)
_RECOMMENDATION = re.compile(
    r"\b(?:recommend\w*|suggest\w*|looking for|i (?:want|need|would like|'d like)|gift|present for"
    r"|should i (?:buy|get|take|choose)|something (?:\w+ ){0,2}(?:for|with)"
    r"|(?:have|sell|got|there) anything (?:\w+ ){0,2}for|what(?:'s| is) (?:the )?best|which one)\b"
)
_OVERVIEW = re.compile(
    r"^(?:hi|hello|hey)?\W*(?:please |can you |could you )?(?:tell me (?:more |something )?about"
    r"|what(?:'s| is| are)|describe|info(?:rmation)? (?:on|about)|(?:more )?details (?:of|on|about)"
    r"|(?:(?:what|which) (?:[\w-]+ ){1,4})?do you (?:have|sell|carry|offer)|i(?:'m| am) interested in)\b"
)
_POLICY = re.compile(
    r"\b(?:polic(?:y|ies)|returns?|refunds?|exchanges?|shipping|ship|deliver(?:y|ies|ed)?|privacy|personal data|terms"
    r"|warrant(?:y|ies)|guarantees?|opening hours|opening times|open on|when (?:are you|do you) open|payments?|pay with"
    r"|contact|phone number|e-?mail|address|where are you|parking|gift cards?|complaints?)\b"
)
_SERVICE_WORDS = re.compile(r"\b(?:services?|treatments?|massages?|facials?|sessions?|consultations?|therap\w+)\b")


@dataclass(frozen=True, slots=True)
class MessageAnalysis:
    """The intent of a message, the names and days in it, and the sources to ask."""

    message: str
    type: QueryType
    intent: Intent
    entities: tuple[str, ...]
    dates: tuple[str, ...]
    asked_at: datetime
    sources: tuple[SourceKind, ...]
    reason: str = ""
    """Why no source is asked."""

    @property
    def terms(self) -> frozenset[str]:
        """The terms of the message."""
        return frozenset(analyze(self.message))

    @property
    def asks_for_rules(self) -> bool:
        """True where the message asks about what the shop's documents say: returns, shipping, opening hours."""
        return speaks_of_rules(self.message)

    @property
    def is_foreign(self) -> bool:
        """True where the message is not in English, whose words tell what is asked for."""
        return language_of(self.message[:LONGEST_READ]) not in (None, "en")

    def days_in(self, zone: str) -> tuple[date, date]:
        """Return the first and the last day that are asked about; "today" is that of a zone, such as Europe/Berlin."""
        return find_days(self.message[:LONGEST_READ], self.asked_at.astimezone(zone_of(zone)).date())

    def as_query_analysis(self) -> QueryAnalysis:
        """Return the analysis as searches are logged with it."""
        return QueryAnalysis(self.type, self.entities, self.dates, self.sources, None, self.reason)


def analyze_message(message: str, configuration: AgentConfiguration, asked_at: datetime) -> MessageAnalysis:
    """Return what a message asks for, and which of the sources that are switched on can know."""
    text = message[:LONGEST_READ]
    told = analyse(text, VocabularySettings())
    intent: Intent = "small talk" if is_small_talk(text) else _find_intent(" ".join(text.casefold().split()))
    sources = () if intent == "small talk" else _choose_sources(text, intent, configuration)
    kind = _find_type(text, intent, told.type)
    dates = find_spelt_dates(text)
    return MessageAnalysis(message, kind, intent, told.entities, dates, asked_at, sources, told.reason)


def is_small_talk(message: str) -> bool:
    """Return whether there is nothing to look for in a message."""
    return route(message[:LONGEST_READ]).kind == "none"


def _find_intent(words: str) -> Intent:
    if _AVAILABILITY.search(words) and not _HOW.match(words):
        return "availability"
    if _SERVICES.search(words):
        return "services"
    if _PRODUCTS.search(words):
        return "products"
    if _PRICE.search(words):
        return "price"
    if _RECOMMENDATION.search(words):
        return "recommendation"
    return "overview" if _OVERVIEW.match(words) else "question"


def _find_type(text: str, intent: Intent, told: QueryType) -> QueryType:
    if intent in ("availability", "services"):
        return "service"
    if intent in ("products", "recommendation"):
        return "service" if told == "service" or _SERVICE_WORDS.search(text.casefold()) else "product"
    return told


def _choose_sources(text: str, intent: Intent, configuration: AgentConfiguration) -> tuple[SourceKind, ...]:
    """Return the sources to ask at once; the internet is asked only when it is known what these have."""
    chosen: list[SourceKind] = []
    if configuration.enable_document_retrieval:
        chosen.append("documents")
    about_rules = intent in ("question", "overview") and speaks_of_rules(text)
    if configuration.enable_database_retrieval and not about_rules:
        chosen.append("database")
    return tuple(chosen)


def speaks_of_rules(text: str) -> bool:
    """Return whether a text has a word of what only documents of a shop say."""
    return _POLICY.search(text[:LONGEST_READ].casefold()) is not None


def find_days(text: str, today: date) -> tuple[date, date]:
    """Return the first and last day that a message asks about; the coming days where it names none."""
    words = text.casefold()
    found = [day for part in _relative_days(words, today) for day in part]
    found += [day for moment in find_moments(text) if (day := _day_of(moment, today))]
    coming = [day for day in found if day >= today]
    if not coming:
        return today, today + timedelta(days=DAYS_AHEAD - 1)
    first = min(coming)
    return first, min(max(coming), first + timedelta(days=MOST_DAYS - 1))


def _relative_days(words: str, today: date) -> list[tuple[date, ...]]:
    monday = today - timedelta(days=today.weekday())
    spans = {
        r"\btoday\b|\btonight\b": (today,),
        r"(?<!after )\btomorrow\b": (today + timedelta(days=1),),
        r"\bday after tomorrow\b": (today + timedelta(days=2),),
        r"\bthis week\b(?!end)": (today, monday + timedelta(days=6)),
        r"\bnext week\b(?!end)": (monday + timedelta(days=7), monday + timedelta(days=13)),
        r"\b(?:this |at the |on the )?weekend\b": (max(today, monday + timedelta(days=5)), monday + timedelta(days=6)),
    }
    return [days for pattern, days in spans.items() if re.search(pattern, words)]


def _day_of(moment: object, today: date) -> date | None:
    """Return the next day that a date or a day of the week may be."""
    weekdays: frozenset[int] = getattr(moment, "weekdays", frozenset())
    month, day, year = (getattr(moment, name, None) for name in ("month", "day", "year"))
    if len(weekdays) == 1:
        return today + timedelta(days=(next(iter(weekdays)) - today.weekday()) % 7)
    if month is None or day is None:
        return None
    for candidate in [year] if year else [today.year, today.year + 1]:
        try:
            found = date(candidate, month, day)
        except ValueError:
            continue
        if found >= today:
            return found
    return None
