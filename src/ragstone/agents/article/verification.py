"""Facts: each sentence of the draft is checked, and those that do not hold go back to the editor or go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any

from ragstone.agents.article.nodes import describe_claims
from ragstone.agents.article.pipeline import Pipeline
from ragstone.agents.article.settle import find_quotes, settle_text
from ragstone.agents.article.state import ArticleState, Record, Update, is_asking
from ragstone.agents.article.team import load_team
from ragstone.agents.article.turns import take_turn
from ragstone.answer.verify.split import MAX_CHARS
from ragstone.answer.verify.statements import find_statements
from ragstone.core.answers import CheckedClaim, Evidence, Verdict
from ragstone.core.errors import RagstoneError, RemoteError
from ragstone.engine.workspace import Workspace

logger = logging.getLogger(__name__)
MOST_EVIDENCE = 3
NODE = "fact_verify"


async def verify_facts(pipeline: Pipeline, state: ArticleState) -> Update:
    """Check the draft; send it back with the evidence while rounds are left, or settle it."""
    checked: Update = {}
    if not is_asking(state, NODE):
        checked = await _check_draft(pipeline, state["draft"], state["verified_claims"])
        checked["best"] = _choose_draft(state["best"], state["draft"], checked["claims"])
        wrong = any(claim["outcome"] != "confirmed" for claim in checked["claims"])
        if not wrong or state["round"] >= pipeline.team.limits.rounds:
            return {**checked, "stage": "settle", **await _settle(pipeline, state["topic"], checked)}
    claims = checked.get("claims", state["claims"])
    prompt = f"{pipeline.team.agents['fact_verify'].task}\n\n{describe_claims(claims)}"
    try:
        update, advice = await take_turn(pipeline, state, "fact_verify", prompt)
    except RemoteError as error:
        # The evidence goes to the editor without advice, too.
        logger.warning("no advice on claims that do not hold: %s", error)
        note = [*checked.get("degraded", ()), f"fact_verify: {error}"]
        update, advice = {"invocation": {}, "degraded": note}, ""
    if advice is None:
        return {**checked, **update}
    return {**checked, **update, "corrections": advice, "stage": "revise", "round": state["round"] + 1}


async def verify_article(workspace: Workspace, article: str, *, kb: str | None = None) -> dict[str, list[Record]]:
    """Return the `claims` of a text with their offsets, and the `results` of checking each; no model is asked."""
    pipeline = Pipeline(workspace, load_team(workspace.settings.agents.file), kb)
    results = (await _check_draft(pipeline, article, []))["claims"]
    claims = [{name: result[name] for name in ("text", "start", "end")} for result in results]
    return {"claims": claims, "results": results}


async def _check_draft(pipeline: Pipeline, text: str, known: list[Record]) -> Update:
    """Return `claims`, every sentence of a text that states something with its verdict, and what is new to record."""
    stated = await asyncio.to_thread(find_statements, text)
    # Also what the agent has had verified by its tool is recorded, without an outcome.
    earlier = {str(record["claim"]): record for record in known if "outcome" in record and not record["failed"]}
    claims: list[Record] = []
    new: list[Record] = []
    for place, sentence in enumerate(stated.found):
        said = text[sentence.start : sentence.end]
        if said not in earlier:
            is_read = place < pipeline.team.limits.claims and len(said) <= MAX_CHARS
            earlier[said] = await _verify_claim(pipeline, said) if is_read else _leave_open(said, "it was not checked")
            new.append(earlier[said])
        claims.append({**earlier[said], "text": said, "start": sentence.start, "end": sentence.end})
    notes = list(dict.fromkeys(note for record in new for note in record["notes"]))
    return {"claims": claims, "verified_claims": new, "degraded": notes}


async def _verify_claim(pipeline: Pipeline, claim: str) -> Record:
    """Return one verdict on a claim: of the knowledge base, and of the web where a search engine is set up."""
    workspace, spec = pipeline.workspace, pipeline.team.agents["fact_verify"]
    own = workspace.verify(claim, mode=spec.mode, kb=pipeline.kb)
    checked = {"knowledge_base": await _record_verdict(claim, "knowledge_base", own, spec.seconds)}
    if workspace.settings.web.kind != "none":
        checked["web"] = await _record_verdict(claim, "web", workspace.verify_web(claim), spec.seconds)
    return combine_verdicts(checked)


async def _record_verdict(claim: str, by: str, verifying: Awaitable[Verdict], seconds: float) -> Record:
    """Return a verdict as a record; one that cannot be had, or not in time, leaves the claim open."""
    try:
        async with asyncio.timeout(seconds):
            return _record(claim, await verifying)
    except (RagstoneError, TimeoutError) as error:
        reason = str(error) or f"no answer within {seconds:g} s"
        logger.warning("cannot check a claim by %s: %s", by, reason)
        return _leave_open(claim, f"{by}: {reason}")


def combine_verdicts(checked: Mapping[str, Record]) -> Record:
    """Return one verdict of several: the first source that settles the claim does; the tenant's own comes first.

    It has failed when none settles the claim and one that did not answer might have.
    """
    records = list(checked.values())
    decisive = next((record for record in records if record["outcome"] != "open"), records[0])
    others = [item for record in records if record is not decisive for item in record["evidence"]]
    return {
        **decisive,
        "checked_by": [by for by, record in checked.items() if not record["failed"]],
        "failed": decisive["outcome"] == "open" and any(record["failed"] for record in records),
        "evidence": [*decisive["evidence"], *others][: 2 * MOST_EVIDENCE],
        "notes": [note for record in records for note in record["notes"]],
    }


def _record(claim: str, verdict: Verdict) -> Record:
    outcome = CheckedClaim(0, 0, 0, None, verdict).outcome
    deciding = {"confirmed": "supported", "refuted": "refuted"}.get(outcome)
    # What decides comes first: it is what a citation names.
    evidence = sorted(verdict.evidence, key=lambda item: item.stance != deciding)[:MOST_EVIDENCE]
    return {
        "claim": claim,
        "by": NODE,
        "outcome": outcome,
        "status": verdict.status,
        "confidence": verdict.confidence,
        "stance": verdict.stance,
        "evidence": [_quote(item) for item in evidence],
        "notes": list(verdict.degraded),
        "failed": False,
    }


def _leave_open(claim: str, reason: str) -> Record:
    return {
        "claim": claim,
        "by": NODE,
        "outcome": "open",
        "status": "UNVERIFIED",
        "confidence": "low",
        "stance": "unknown",
        "evidence": [],
        "notes": [reason],
        "failed": True,
        "checked_by": [],
    }


def _quote(item: Evidence) -> Record:
    kept: tuple[str, ...] = (
        "text", "source", "stance", "document_id", "chunk_id", "title", "uri", "page", "section", "start", "end",
    )  # fmt: skip
    return {name: getattr(item, name) for name in kept}


def _choose_draft(best: Record, draft: str, claims: list[Record]) -> Record:
    """Return the draft of which more holds; an editor may make it worse."""
    held = sum(claim["outcome"] == "confirmed" for claim in claims)
    return best if best and best["held"] > held else {"draft": draft, "claims": claims, "held": held}


async def _settle(pipeline: Pipeline, topic: str, checked: Update) -> Update:
    """Return the best draft with citations, filled up with sentences of the sources where little is left of it."""
    draft, claims = str(checked["best"]["draft"]), checked["best"]["claims"]
    least = pipeline.team.limits.least_cited
    settled: dict[str, Any] = settle_text(topic, draft, claims, ())
    cited = sum(claim["citation"] is not None for claim in settled["claims"])
    if cited >= least:
        return {"article": settled}
    try:
        async with asyncio.timeout(pipeline.team.agents["fact_verify"].seconds):
            quotes = await find_quotes(pipeline, topic, settled["body"], least - cited)
    except (RagstoneError, TimeoutError) as error:
        note = f"fact_verify: {str(error) or 'the sources did not answer in time'}"
        return {"article": settled, "degraded": [*checked["degraded"], note]}
    return {"article": settle_text(topic, draft, claims, quotes)}
