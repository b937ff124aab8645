"""What is said to each question, claim, statement and payload of a half."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import Any

from bench.answers.collection import AskedQuestion, LabelledClaim, LabelledStatement, PlantedReply
from bench.answers.doubles import ScriptedLLM
from bench.answers.grade import grade, words_of
from bench.answers.payloads import leaks
from bench.answers.tables import GRADED, Failure, Table, is_unanswerable
from ragstone.answer.ask import Answerer
from ragstone.core.answers import Answer, AnswerReady, SentenceReady, Verdict
from ragstone.core.search import Question
from ragstone.core.types import Hit
from ragstone.engine.components import Components
from ragstone.engine.workspace import Workspace

VERDICTS = ("VERIFIED", "LIKELY", "supported", "refuted", "mixed", "unknown")
Read = Callable[[AskedQuestion], Awaitable[str]]
"""Returns what is said to a question; "" refuses."""
Filter = Mapping[str, Any] | None


async def measure_questions(name: str, questions: Sequence[AskedQuestion], read: Read) -> Table:
    """Grade what is said to each question."""
    table = Table(name, GRADED)
    for question in questions:
        said = await read(question)
        label = grade(said, question.facts, in_parts=question.kind == "two-part") if said else "refused"
        table.add(question.kind, label)
        if (label == "refused") != is_unanswerable(question.kind) or label in ("wrong", "partly"):
            asked = " / ".join([*question.earlier, question.text])
            table.failures.append(Failure(question.id, question.kind, asked, question.gold, said or "(refused)"))
    return table


def read_by_asking(workspace: Workspace, where: Callable[[AskedQuestion], Filter] = lambda question: None) -> Read:
    """Return a reader that asks the workspace, within a filter; a follow-up comes after the questions before it."""

    async def read(question: AskedQuestion) -> str:
        conversation = f"bench-{uuid.uuid4().hex}" if question.earlier else None
        for earlier in question.earlier:
            await workspace.ask(Question(earlier, conversation=conversation))
        return answer_of(await workspace.ask(Question(question.text, where=where(question), conversation=conversation)))

    return read


def answer_of(answer: Answer) -> str:
    """Return what an answer says; "" where it says that it is none."""
    outcome = getattr(answer, "outcome", "answered" if answer.status == "answered" else "nothing")
    return answer.answer if outcome == "answered" else ""


async def measure_claims(claims: Sequence[LabelledClaim], workspace: Workspace) -> list[Table]:
    """Count the verdicts on true and on false claims."""
    true, false = Table("true claims", VERDICTS), Table("false claims", VERDICTS)
    for claim in claims:
        verdict = await workspace.verify(claim.text)
        table = true if claim.is_true else false
        table.add(claim.kind, verdict.status, verdict.stance)
        likely = verdict.status in ("VERIFIED", "LIKELY")
        is_right = likely if claim.is_true else not likely and verdict.stance == "refuted"
        if not is_right:
            table.failures.append(Failure(claim.id, claim.kind, claim.text, claim.gold, describe(verdict)))
    return [true, false]


def describe(verdict: Verdict) -> str:
    """Return a verdict and the evidence for it in a line."""
    best = verdict.evidence[0] if verdict.evidence else None
    shown = f"; {best.stance} by “{best.text}” {list(best.failed)}" if best else ""
    return f"{verdict.status}, {verdict.stance}{shown}"


async def measure_statements(
    statements: Sequence[LabelledStatement], components: Components, workspace: Workspace
) -> list[Table]:
    """Count the statements that come out of an answer, and the verdicts on them."""
    labels = ("said", *VERDICTS)
    true, altered = Table("true statements", labels), Table("altered statements", labels)
    for statement in statements:
        said, note = await say(statement, components)
        verdict = await workspace.verify(statement.text)
        table = true if statement.is_true else altered
        table.add(statement.kind, *(["said"] if said else []), verdict.status, verdict.stance)
        likely = verdict.status in ("VERIFIED", "LIKELY")
        if said != statement.is_true or (likely and not statement.is_true):
            shown = f"{'said' if said else f'not said ({note})'}; {describe(verdict)}"
            table.failures.append(Failure(statement.id, statement.kind, statement.text, statement.source, shown))
    return [true, altered]


async def say(statement: LabelledStatement, components: Components) -> tuple[bool, str]:
    """Return whether a statement that a model makes comes out of the answer, and what was noted on the way."""
    answerer = scripted_answerer(components, f"{statement.text} [1]")
    answer = await answerer.answer(statement.text, [as_hit(statement.document, statement.passage)])
    kept = " ".join(sentence.text for sentence in answer.sentences if sentence.support == "supported")
    return words_of(statement.text) in words_of(kept), "; ".join(answer.degraded)


def scripted_answerer(components: Components, reply: str) -> Answerer:
    """Return an answerer whose model says this."""
    return Answerer(components.embedder, ScriptedLLM(reply), reader=components.reader)


def as_hit(document: str, passage: str) -> Hit:
    """Return a passage as if a search had found it."""
    title = PurePosixPath(document).stem
    return Hit(document, document, title, document, "", None, passage, 1.0, {}, {}, 0, len(passage))


async def measure_payloads(planted: Iterable[PlantedReply], components: Components) -> Table:
    """Count the payloads beside an honest sentence that come out, in whole and in streamed answers."""
    table = Table("payloads", ("whole", "streamed"))
    for reply in planted:
        out = []
        for way in ("whole", "streamed"):
            said = await collect(reply, components, streaming=way == "streamed")
            if leaks(reply, said):
                out.append(way)
        table.add(reply.kind, *out)
        if out:
            table.failures.append(Failure(reply.kind, reply.kind, reply.text, "", ", ".join(out)))
    return table


async def collect(reply: PlantedReply, components: Components, *, streaming: bool) -> str:
    """Return all that leaves an answer whose model replies with a text."""
    shown: list[str] = []
    hit = as_hit(reply.document, reply.passage)
    events = scripted_answerer(components, reply.text).events(reply.passage[:200], [hit], streaming=streaming)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, SentenceReady):
                shown.append(event.text)
            elif isinstance(event, AnswerReady):
                shown += [event.answer.answer, *(sentence.text for sentence in event.answer.sentences)]
    return "\n".join(shown)
