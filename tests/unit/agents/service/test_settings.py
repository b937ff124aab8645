"""The configuration of the agent: its defaults are those of the design, and nothing unknown gets in."""

from __future__ import annotations

import pytest

from ragstone.agents.service.settings import DEMO_CONFIGURATIONS, AgentConfiguration, read_configuration
from ragstone.core.errors import InputError


@pytest.mark.req("R-CSA-24", "R-CSA-25", "R-CSA-26", "R-CSA-27", "R-CSA-28", "R-DOM-26")
def test_the_defaults_are_those_of_the_design() -> None:
    assert read_configuration({}).model_dump() == {
        "enable_document_retrieval": True,
        "enable_database_retrieval": True,
        "enable_internet_enrichment": False,
        "enable_source_attribution": True,
        "max_document_results": 3,
        "max_database_results": 5,
        "max_internet_results": 2,
        "semantic_search_weight": 0.7,
        "keyword_search_weight": 0.3,
        "embedding_model": "text-embedding-3-small",
        "agent_can_do": "",
        "agent_cannot_do": "",
        "citation_style": "inline",
        "history_turns": 5,
        "handover_message": "",
    }


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"enable_documents": True}, "enable_documents"),
        ({"max_internet_results": 4}, "max_internet_results"),
        ({"citation_style": "none"}, "citation_style"),
        ({"semantic_search_weight": 0, "keyword_search_weight": 0}, "the configuration"),
        ({"agent_cannot_do": "x" * 4001}, "agent_cannot_do"),
    ],
)
def test_what_cannot_be_is_refused_by_name(values: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=f"^{named}: "):
        read_configuration(values)


def test_weights_are_shares() -> None:
    assert AgentConfiguration().dense_weight == pytest.approx(0.7)
    assert AgentConfiguration(semantic_search_weight=0.2, keyword_search_weight=0.6).dense_weight == pytest.approx(0.25)


@pytest.mark.req("R-TST-46", "R-TST-47", "R-TST-48", "R-TST-49")
def test_there_are_four_demo_configurations() -> None:
    shown = {name: (one.enable_internet_enrichment, one.style) for name, one in DEMO_CONFIGURATIONS.items()}
    assert shown == {
        "full attribution": (True, "inline"),
        "no attribution": (True, "none"),
        "internet enrichment": (True, "endnote"),
        "own data only": (False, "footnote"),
    }
