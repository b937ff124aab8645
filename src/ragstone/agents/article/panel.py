"""The panel at the end: rubrics that are checked and models that are asked, each with a recorded vote."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

from ragstone.agents.agent import DATA
from ragstone.agents.article.pipeline import Pipeline
from ragstone.agents.article.state import ArticleState, Record, Update
from ragstone.agents.article.team import LimitSpec, PanelSpec, Rubric
from ragstone.answer.verify.statements import find_statements
from ragstone.core.errors import NotFoundError, RagstoneError, RemoteError

logger = logging.getLogger(__name__)
VOTER = "article"
ASKED = "Say ACCEPT or REJECT first, then your reason in one sentence."
_BALLOT = re.compile(r"\W*(ACCEPT|REJECT)(?:ED|S)?\b", re.I)
_MARK = re.compile(r" \[\d+\]")


async def hold_vote(pipeline: Pipeline, state: ArticleState) -> Update:
    """Have every member of the panel vote, and keep which retrievals the article has used."""
    votes = [await _vote(pipeline, member, state) for member in pipeline.team.panel]
    return {"votes": votes, "degraded": await _keep_feedback(pipeline, state)}


def count_votes(votes: list[Record]) -> bool:
    """Return whether a panel accepts: most of those who do not abstain, and at least one."""
    return sum({"accept": 1, "reject": -1, "abstain": 0}[str(vote["vote"])] for vote in votes) > 0


async def _vote(pipeline: Pipeline, member: PanelSpec, state: ArticleState) -> Record:
    if member.rubric:
        fault = RUBRICS[member.rubric](state["article"], pipeline.team.limits)
        return {"member": member.name, "vote": "reject" if fault else "accept", "reason": fault or "nothing is wrong"}
    turns = [
        {"role": "system", "content": f"{member.persona} {ASKED}\n\n{DATA}"},
        {"role": "user", "content": str(state["article"]["body"])},
    ]
    try:
        reply = await pipeline.chat(member).reply(turns, temperature=0.0)
    except RemoteError as error:
        logger.warning("a member of the panel does not vote: %s", error)
        return {"member": member.name, "vote": "abstain", "reason": str(error)}
    pipeline.usage += [reply.usage] if reply.usage else []
    ballot = _BALLOT.match(reply.text)
    reason = " ".join(reply.text[ballot.end() if ballot else 0 :].split()).lstrip(" .:,-–")[:500]
    return {"member": member.name, "vote": ballot[1].lower() if ballot else "abstain", "reason": reason}


def _check_grounds(article: Record, limits: LimitSpec) -> str:
    """Return a sentence that is said without a citation; empty when there is none."""
    plain = _MARK.sub("", str(article["body"]))
    grounds = [claim for claim in article["claims"] if claim["citation"]]
    cited = {" ".join(str(claim[name]).split()) for claim in grounds for name in ("text", "evidence")}
    stated = [" ".join(plain[one.start : one.end].split()) for one in find_statements(plain).found]
    loose = next((sentence for sentence in stated if sentence not in cited), "")
    return f"no source for: {loose[:200]}" if loose else ""


def _check_sources(article: Record, limits: LimitSpec) -> str:
    cited = sum(claim["citation"] is not None for claim in article["claims"])
    return "" if cited >= limits.least_cited else f"{cited} sentences are cited; {limits.least_cited} are wanted"


def _check_shape(article: Record, limits: LimitSpec) -> str:
    body = str(article["body"])
    words = len(_MARK.sub("", body).split())
    if words < limits.least_words:
        return f"it has {words} words; {limits.least_words} are wanted"
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    twice = next((line for place, line in enumerate(lines) if line in lines[:place]), "")
    return f"said twice: {twice[:200]}" if twice else ""


RUBRICS: Mapping[Rubric, Callable[[Record, LimitSpec], str]] = {
    "grounded": _check_grounds,
    "sourced": _check_sources,
    "shaped": _check_shape,
}
"""Each returns what is wrong; empty when nothing is."""


async def _keep_feedback(pipeline: Pipeline, state: ArticleState) -> list[str]:
    """Vote for the passages that the article cites, under the topic and the queries that found their documents."""
    cited: dict[str, list[str]] = {}
    for citation in state["article"]["citations"]:
        if not citation["site"]:
            cited.setdefault(str(citation["document_id"]), []).append(str(citation["chunk_id"]))
    used = {state["topic"]: [chunk for chunks in cited.values() for chunk in chunks]}
    for context in state["retrieved_contexts"]:
        used.setdefault(str(context["query"]), []).extend(cited.get(str(context["document_id"]), ()))
    feedback, notes = pipeline.workspace.feedback, list[str]()
    for query, chunks in used.items():
        if not chunks:
            continue
        try:
            await feedback.vote(query, list(dict.fromkeys(chunks)), "used", voter=VOTER, kb=pipeline.kb)
        except NotFoundError:
            notes.append("feedback: a passage that is cited was replaced meanwhile")
        except RagstoneError as error:
            notes.append(f"feedback: {error}")
    return list(dict.fromkeys(notes))
