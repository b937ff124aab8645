"""The nodes in which agents research, write, edit and criticise."""

from __future__ import annotations

import re

from ragstone.agents.article.pipeline import Pipeline
from ragstone.agents.article.state import ArticleState, Record, Update
from ragstone.agents.article.team import AgentName, VoiceSpec
from ragstone.agents.article.turns import call_tools, take_turn
from ragstone.agents.chat import ToolCall
from ragstone.agents.results import compress_text
from ragstone.language.sentences import sentence_spans

FACT_CHARS = 800
"""Characters of one passage in a prompt."""
_FENCED = re.compile(r"\s*```[a-z]*\n(.*)\n```\s*", re.S)
_MARKS = re.compile(r" ?\[\d{1,3}\](?![(\w])")


async def research(pipeline: Pipeline, state: ArticleState) -> Update:
    """Have the topic researched; an agent that does not ask for it gets it researched all the same."""
    prompt = _write_prompt(pipeline, "research", Topic=state["topic"])
    update, text = await take_turn(pipeline, state, "research", prompt)
    if text is None:
        return update
    found = state["retrieved_contexts"]
    if not any(query["tool"] == "research_topic" for query in state["knowledge_queries"]):
        call = ToolCall("research", "research_topic", {"topic": state["topic"]})
        made = await call_tools(pipeline, {**state, "invocation": {}}, "research", [call])
        update |= {name: made[name] for name in ("knowledge_queries", "retrieved_contexts")}
        found = made["retrieved_contexts"]
        if made["knowledge_queries"][0]["error"]:
            update["degraded"] = [f"research: {made['knowledge_queries'][0]['error']}"]
    kept = ("text", "source", "date", "url", "relevance")
    return {**update, "research_facts": [{name: context[name] for name in kept} for context in found]}


async def write(pipeline: Pipeline, state: ArticleState) -> Update:
    """Have the first draft written."""
    facts = _quote_facts(state, pipeline.team.limits.context_chars)
    update, text = await take_turn(
        pipeline, state, "writer", _write_prompt(pipeline, "writer", Topic=state["topic"], Facts=facts)
    )
    if text is None:
        return update
    draft = _clean(text)
    return {**update, "draft": draft, "degraded": [] if draft else ["writer: it returned no text"]}


async def validate_voice(pipeline: Pipeline, state: ArticleState) -> Update:
    """Note what the voice of the draft must not have."""
    return {"voice_notes": note_voice(state["draft"], pipeline.team.voice)}


def note_voice(text: str, voice: VoiceSpec) -> list[str]:
    """Return what to change in the voice of a text: phrases, endless sentences, sentences said twice."""
    notes = [f'do not say "{phrase}"' for phrase in voice.banned if phrase in text.lower()]
    sentences = [text[start:end].strip() for start, end in sentence_spans(text)]
    for sentence in dict.fromkeys(sentences):
        if len(sentence.split()) > voice.most_words:
            notes.append(f"split this sentence: {sentence[:200]}")
        if sentences.count(sentence) > 1:
            notes.append(f"say this once: {sentence[:200]}")
    return notes[:50]


async def edit(pipeline: Pipeline, state: ArticleState) -> Update:
    """Have the draft edited, with the notes on its voice, or with the claims that do not hold."""
    parts = {"Article": state["draft"]}
    if state["stage"] == "revise":
        parts |= {
            "Sentences that do not hold": describe_claims(state["claims"]),
            "Advice": state["corrections"],
            "Critique": state["critique"],
        }
    else:
        parts["Notes"] = "\n".join(f"- {note}" for note in state["voice_notes"])
    return await _rewrite(pipeline, state, "editor", parts)


async def enforce_style(pipeline: Pipeline, state: ArticleState) -> Update:
    """Have the style of the draft evened out."""
    return await _rewrite(pipeline, state, "style_enforce", {"Article": state["draft"]})


async def criticize(pipeline: Pipeline, state: ArticleState) -> Update:
    """Have a strict reader name what is wrong."""
    prompt = _write_prompt(pipeline, "critic", Topic=state["topic"], Article=state["draft"])
    update, text = await take_turn(pipeline, state, "critic", prompt)
    return update if text is None else {**update, "critique": text.strip()}


async def _rewrite(pipeline: Pipeline, state: ArticleState, node: AgentName, parts: dict[str, str]) -> Update:
    """Have an agent write the draft again; one that returns nothing leaves it as it is."""
    update, text = await take_turn(pipeline, state, node, _write_prompt(pipeline, node, **parts))
    if text is None:
        return update
    draft = _clean(text)
    if not draft:
        return {**update, "degraded": [f"{node}: it returned no text"]}
    return {**update, "draft": draft}


def describe_claims(claims: list[Record]) -> str:
    """Return the claims that do not hold, each with what the sources say."""
    lines = []
    for claim in claims:
        if claim["outcome"] != "confirmed":
            lines.append(f"- {claim['text']}")
            lines += [f"  The source says: {item['text']} ({item['title']})" for item in claim["evidence"][:2]]
            if claim["failed"]:
                lines.append("  This could not be checked: nothing says that it is wrong.")
    return "\n".join(lines)


def _write_prompt(pipeline: Pipeline, node: AgentName, **parts: str) -> str:
    """Return the task of an agent, and what it works on under headings of its own."""
    named = [f"### {title}\n{text}" for title, text in parts.items() if text]
    return "\n\n".join([pipeline.team.agents[node].task, *named])


def _quote_facts(state: ArticleState, limit: int) -> str:
    """Return the passages that were found, long ones compressed, up to a number of characters."""
    lines: list[str] = []
    left = limit
    for fact in state["research_facts"]:
        text = " ".join(compress_text(str(fact["text"]), state["topic"], FACT_CHARS).split())
        if len(text) > left:
            break
        lines.append(f"- {text} ({fact['source']})")
        left -= len(text)
    return "\n".join(lines)


def _clean(text: str) -> str:
    """Return a text without the fence around it and without marks of its own: citations are set by what is checked."""
    fenced = _FENCED.fullmatch(text)
    return _MARKS.sub("", fenced[1] if fenced else text).strip()
