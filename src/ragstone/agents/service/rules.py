"""Rules of a shop: what its agent must not do. A request inside them is declined, with and without a language model.

A rule is a line or a sentence of `agent_cannot_do`. A message falls under it when it has most of the rule's telling
words, or most of those that say nothing about the shop's own goods, or a word by which people speak of its topic
without naming it. Cosines do not tell: "What is your return policy?" is nearer to "promise refunds" than most messages
that ask for one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.agents.service.settings import AgentConfiguration
from ragstone.language.analyzer import analyze
from ragstone.language.relevance import ASKING
from ragstone.language.sentences import sentence_spans

MOST_RULES = 50
MOST_WORDS = 0.6
"""Share of a rule's telling words that make a message fall under it."""
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_OPENING = re.compile(
    r"^(?:(?:you|the agent|it|we|please)\s+)?(?:(?:must|may|should|can|shall|will)\s*(?:not|never)"
    r"|cannot|can't|do not|don't|does not|never|no|not)\s+",
    re.I,
)
_GENERIC = frozenset(
    analyze(
        "discuss talk answer question questions give provide offer speak comment make say share reveal help requests "
        "customer customers anything anyone other others kind kinds type types matter matters topic topics regarding "
        "concerning related about agent must never always only without shop store advice advise opinion opinions "
        "information"
    )
)
"""Words of rules that do not tell what a rule is about."""
_SPOKEN_OF = {
    "medical medicine health diagnose diagnosis treat illness": (
        "doctor disease medicine medication symptom diagnose diagnosis pregnant pregnancy allergy allergic eczema rash "
        "pain infection blood pressure dose dosage ibuprofen aspirin antibiotic cure heal"
    ),
    "legal law lawyer": "lawyer attorney sue lawsuit court illegal liable liability",
    "competitor competition rival": "competitor competition rival elsewhere amazon ebay walmart",
    "politics political election": "politics politician election vote president government party",
    "religion religious": "religion religious god church bible quran prayer",
    "discount bargain negotiate haggle": "discount cheaper bargain haggle coupon voucher promo percent",
    "invest investment financial tax": "invest investment stocks bitcoin crypto tax loan mortgage",
}
"""Topics of rules, and words by which customers speak of them."""
_TOPICS = [(frozenset(analyze(named)), frozenset(analyze(spoken))) for named, spoken in _SPOKEN_OF.items()]


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that the agent must not do, its telling words, and others that speak of the same."""

    text: str
    terms: frozenset[str]
    spoken: frozenset[str] = frozenset()


def read_rules(configuration: AgentConfiguration) -> list[Rule]:
    """Return the rules of a configuration that say something."""
    found: list[Rule] = []
    for line in configuration.agent_cannot_do.splitlines():
        bare = _BULLET.sub("", line)
        for start, end in sentence_spans(bare):
            text = _OPENING.sub("", bare[start:end].strip()).strip(" .;!")
            terms = frozenset(analyze(text)) - _GENERIC - ASKING
            if terms:
                spoken = frozenset[str]().union(*(words for named, words in _TOPICS if named & terms))
                found.append(Rule(text, terms, spoken))
    return found[:MOST_RULES]


def find_broken_rule(message: str, rules: Sequence[Rule], known: frozenset[str] = frozenset()) -> Rule | None:
    """Return the rule that a message falls under by its words, or None; `known` are terms of the shop's own goods."""
    said = frozenset(analyze(message))
    for rule in rules:
        if said & (rule.spoken - known):
            return rule
        shared, telling = rule.terms & said, rule.terms - known
        if not shared:
            continue
        if len(shared) >= MOST_WORDS * len(rule.terms) or (
            telling and len(shared & telling) >= MOST_WORDS * len(telling)
        ):
            return rule
    return None
