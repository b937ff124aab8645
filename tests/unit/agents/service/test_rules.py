"""A request inside a rule is known by its words."""

from __future__ import annotations

import pytest

from ragstone.agents.service.rules import find_broken_rule, read_rules
from ragstone.agents.service.settings import AgentConfiguration
from ragstone.language.analyzer import analyze

CANNOT = """\
- Do not give medical advice.
- Never discuss competitors or their prices. You must not promise refunds.
3. No legal questions
"""
KNOWN = frozenset(analyze("Oriental Spice perfume price massage refund"))


def rules() -> list[str]:
    return [rule.text for rule in read_rules(AgentConfiguration(agent_cannot_do=CANNOT))]


def test_a_line_or_a_sentence_is_a_rule() -> None:
    assert rules() == [
        "give medical advice",
        "discuss competitors or their prices",
        "promise refunds",
        "legal questions",
    ]
    assert read_rules(AgentConfiguration(agent_cannot_do="Never.\n\n- \nAnything.")) == []


@pytest.mark.req("R-CSA-40")
@pytest.mark.parametrize(
    ("message", "broken"),
    [
        ("Can you give me medical advice about my rash?", "give medical advice"),
        ("Is this a medical product?", "give medical advice"),
        ("What do your competitors charge?", "discuss competitors or their prices"),
        ("What is the price of Oriental Spice?", ""),
        ("I am pregnant, may I use this?", "give medical advice"),
        ("Is it cheaper on Amazon?", "discuss competitors or their prices"),
        ("Can I sue the delivery company?", "legal questions"),
        ("Promise me a refund!", "promise refunds"),
        ("I have a legal problem with my landlord", "legal questions"),
        ("When can I book a massage?", ""),
        ("What is your return policy?", ""),
    ],
)
def test_a_message_falls_under_a_rule(message: str, broken: str) -> None:
    found = find_broken_rule(message, read_rules(AgentConfiguration(agent_cannot_do=CANNOT)), KNOWN)
    assert (found.text if found else "") == broken
