"""The agents of the article pipeline as data."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml

from ragstone.agents.article.graph import ORDER, build_graph
from ragstone.agents.article.nodes import describe_claims, note_voice
from ragstone.agents.article.panel import RUBRICS, count_votes
from ragstone.agents.article.pipeline import Pipeline
from ragstone.agents.article.saver import RunSaver
from ragstone.agents.article.settle import settle_text
from ragstone.agents.article.state import ArticleState, new_state
from ragstone.agents.article.team import LimitSpec, VoiceSpec, load_team
from ragstone.agents.article.verification import combine_verdicts
from ragstone.agents.roles import ROLES
from ragstone.core.errors import SettingsError


@pytest.mark.req("R-ART-09")
def test_the_fact_verifier_is_the_one_that_the_design_names() -> None:
    verifier = load_team().agents["fact_verify"]
    assert (verifier.title, verifier.model) == ("Fact Verifier", "llama-3.3-70b-versatile")
    assert verifier.persona == "You verify factual claims using the knowledge base."
    assert verifier.tools == ("verify_claim", "search_knowledge")


@pytest.mark.req("R-TOL-26", "R-TOL-29")
def test_every_agent_has_only_tools_of_its_role() -> None:
    team = load_team()
    assert {name: set(agent.tools) for name, agent in team.agents.items()} == {
        "research": {"research_topic"},
        "writer": {"search_knowledge", "get_writing_examples"},
        "editor": {"search_knowledge"},
        "style_enforce": set(),
        "critic": {"verify_claim", "search_knowledge", "find_similar_critiques"},
        "fact_verify": {"verify_claim", "search_knowledge"},
    }
    assert all(set(agent.tools) <= set(ROLES[agent.role].tools) for agent in team.agents.values())


def write_team(folder: Path, **agents: dict[str, object]) -> Path:
    """Write the agents that come with Ragstone with some of them changed."""
    given = yaml.safe_load(load_team().model_dump_json())
    for name, changes in agents.items():
        given["agents"][name] |= changes
    path = folder / "agents.yaml"
    path.write_text(yaml.safe_dump(given))
    return path


def test_style_references_can_be_switched_on(tmp_path: Path) -> None:
    team = load_team(write_team(tmp_path, style_enforce={"tools": ["get_style_references"]}))
    assert team.agents["style_enforce"].tools == ("get_style_references",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tools": ["research_topic"]}, "a Writer may not call research_topic"),
        ({"role": "Publisher"}, "there is no role 'Publisher'"),
        ({"calls": 6}, "less than or equal to 5"),
        ({"colour": "red"}, "agents.writer.colour: Extra inputs are not permitted"),
    ],
)
def test_what_an_agent_may_not_be_is_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_team(write_team(tmp_path, writer=changes))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read agents\.file"):
        load_team(tmp_path / "missing.yaml")
    (tmp_path / "bad.yaml").write_text("agents: [")
    with pytest.raises(SettingsError, match="cannot be used"):
        load_team(tmp_path / "bad.yaml")


def test_notes_on_the_voice() -> None:
    voice = VoiceSpec(most_words=5, banned=("in conclusion",))
    text = "In conclusion, it is. One two three four five six. Yes, it is so. Yes, it is so."
    assert note_voice(text, voice) == [
        'do not say "in conclusion"',
        "split this sentence: One two three four five six.",
        "say this once: Yes, it is so.",
    ]


def quote(text: str, stance: str, start: int = 0, section: str = "") -> dict[str, object]:
    place = {"document_id": "d", "chunk_id": "c", "title": "T", "uri": "u", "page": None, "section": section}
    return {"text": text, "source": "s", "stance": stance, **place, "start": start, "end": start + len(text)}


def claim(text: str, draft: str, outcome: str, *evidence: dict[str, object]) -> dict[str, object]:
    start = draft.index(text)
    found = {"text": text, "start": start, "end": start + len(text), "outcome": outcome}
    return {**found, "evidence": list(evidence), "checked_by": ["knowledge_base"]}


def test_a_settled_text_says_what_holds_and_nothing_else() -> None:
    draft = "# Gate\n\n## Gate\n\nIt opens at nine. It sings. It weighs two tonnes.\n\n## Songs\n\n- It sings.\n"
    claims = [
        claim("It opens at nine.", draft, "confirmed", quote("The gate opens at nine.", "supported")),
        claim("It sings.", draft, "open", quote("The bell sings.", "unknown", 50)),
        claim("It weighs two tonnes.", draft, "refuted", quote("It weighs nine tonnes.", "refuted", 90, "Weight")),
        {**claim("It sings.", draft, "open"), "start": draft.rindex("It sings."), "end": len(draft) - 1},
    ]
    settled = settle_text("Gate", draft, claims, ())
    assert settled["body"] == "# Gate\n\n## Gate\n\nIt opens at nine. [1] It weighs nine tonnes. [2]"
    assert [one["treatment"] for one in settled["claims"]] == ["kept", "removed", "corrected", "removed"]
    assert [one["quote"] for one in settled["citations"]] == ["The gate opens at nine.", "It weighs nine tonnes."]
    assert RUBRICS["grounded"](settled, LimitSpec()) == ""
    assert [one["n"] for one in settled["citations"]] == [1, 2]
    loose = {**settled, "body": settled["body"] + " It sings all night."}
    assert RUBRICS["grounded"](loose, LimitSpec()) == "no source for: It sings all night."
    assert RUBRICS["sourced"](settled, LimitSpec()) == "2 sentences are cited; 5 are wanted"
    assert RUBRICS["shaped"](settled, LimitSpec()).endswith("40 are wanted")


def test_quotes_of_one_source_have_one_number_and_no_sentence_is_said_twice() -> None:
    draft = "It opens at nine. It is red. It opens at nine."
    opens = claim("It opens at nine.", draft, "confirmed", quote("The gate opens at nine.", "supported"))
    again = {**opens, "start": draft.rindex("It opens"), "end": len(draft)}
    red = claim("It is red.", draft, "confirmed", quote("The gate is red.", "supported", 40))
    quotes = [quote("The gate weighs nine tonnes.", "supported", 90, "Weight")]
    settled = settle_text("Gate", draft, [opens, red, again], quotes)
    assert settled["body"] == (
        "# Gate\n\nIt opens at nine. [1] It is red. [1]\n\n## From the sources\n\n- The gate weighs nine tonnes. [2]"
    )
    assert [(one["n"], one["start"]) for one in settled["citations"]] == [(1, 0), (1, 40), (2, 90)]
    assert [one["treatment"] for one in settled["claims"]] == ["kept", "kept", "removed", "kept"]


@pytest.mark.req("R-ART-11")
@pytest.mark.parametrize(
    ("own", "web", "outcome"),
    [
        ("confirmed", "refuted", "confirmed"),
        ("refuted", "confirmed", "refuted"),
        ("open", "confirmed", "confirmed"),
        ("open", "refuted", "refuted"),
        ("open", "open", "open"),
    ],
)
def test_the_tenants_own_sources_settle_a_claim_before_the_web_does(own: str, web: str, outcome: str) -> None:
    def record(name: str, outcome: str) -> dict[str, object]:
        return {"outcome": outcome, "evidence": [{"text": name}], "notes": [name], "failed": False}

    both = combine_verdicts({"knowledge_base": record("own", own), "web": record("web", web)})
    assert (both["outcome"], both["checked_by"]) == (outcome, ["knowledge_base", "web"])
    assert {item["text"] for item in both["evidence"]} == {"own", "web"}
    decisive = "web" if own == "open" and web != "open" else "own"
    assert both["evidence"][0]["text"] == decisive


@pytest.mark.parametrize(("web", "failed"), [("open", True), ("refuted", False)])
def test_a_claim_has_no_verdict_while_a_source_that_could_settle_it_has_not_answered(web: str, failed: bool) -> None:
    def record(outcome: str, *, failed: bool) -> dict[str, object]:
        return {"outcome": outcome, "evidence": [], "notes": [], "failed": failed}

    for own_failed in (True, False):
        own, other = record("open", failed=own_failed), record(web, failed=web == "open" and not own_failed)
        assert combine_verdicts({"knowledge_base": own, "web": other})["failed"] is failed


def test_a_claim_that_could_not_be_checked_is_not_said_to_be_wrong() -> None:
    claims = [
        {"text": "Gates sing.", "outcome": "open", "evidence": [], "failed": False},
        {"text": "Gates open.", "outcome": "open", "evidence": [], "failed": True},
    ]
    assert describe_claims(claims) == (
        "- Gates sing.\n- Gates open.\n  This could not be checked: nothing says that it is wrong."
    )


@pytest.mark.req("R-ART-12")
def test_a_panel_accepts_by_the_majority_of_those_who_vote() -> None:
    def votes(*ballots: str) -> list[dict[str, object]]:
        return [{"member": str(place), "vote": ballot, "reason": ""} for place, ballot in enumerate(ballots)]

    assert count_votes(votes("accept", "abstain", "abstain"))
    assert count_votes(votes("accept", "accept", "reject"))
    assert not count_votes(votes("accept", "reject"))
    assert not count_votes(votes("abstain"))


@pytest.mark.req("R-ART-04")
def test_a_state_begins_with_empty_lists_and_nodes_add_to_them() -> None:
    state, hints = new_state("Gates"), get_type_hints(ArticleState, include_extras=True)
    for name in ("research_facts", "messages", "knowledge_queries", "retrieved_contexts", "verified_claims"):
        assert state[name] == []  # type: ignore[literal-required]
        assert hints[name].__metadata__ == (operator.add,)
    assert hints.keys() == state.keys()


@pytest.mark.req("R-ART-03", "R-ART-16")
def test_every_node_is_registered_and_only_agents_have_an_edge_to_the_tools() -> None:
    class Nowhere:
        articles = None

    pipeline = Pipeline(Nowhere(), load_team())  # type: ignore[arg-type]
    for name, order in ORDER.items():
        drawn = build_graph(pipeline, name, RunSaver(None, 0), lambda _node, _event: None).get_graph()  # type: ignore[arg-type]
        assert set(drawn.nodes) == {"__start__", "__end__", "tools", *order}
        asking = {edge.source for edge in drawn.edges if edge.target == "tools"}
        assert asking == {edge.target for edge in drawn.edges if edge.source == "tools"}
        assert asking == set(order) & {"research", "writer", "editor", "style_enforce", "critic", "fact_verify"}
