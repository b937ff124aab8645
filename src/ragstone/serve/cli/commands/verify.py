"""`ragstone verify` and `ragstone check`: a claim, the receipt of an answer or a whole text against the kb."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.search import MODEL_WAIT
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL, search_code
from ragstone.serve.cli.options import ModeOption, Where, read_where
from ragstone.serve.cli.render.output import one_line, place, pluralize, text
from ragstone.serve.cli.render.progress import query_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.answers import CheckedText, Evidence, ReceiptReport, Verdict

COLOURS = {"VERIFIED": "bold green", "LIKELY": "bold yellow", "UNVERIFIED": "bold red"}
SUPPORTED = {
    "VERIFIED": "the sources support it",
    "LIKELY": "the sources support it, but not beyond doubt",
    "UNVERIFIED": "the sources only point to it",
}
SAID = {
    "refuted": "a source says otherwise",
    "mixed": "the sources disagree",
    "unknown": "the sources do not settle it",
}
OUTCOME_COLOURS = {"confirmed": "bold green", "refuted": "bold red", "open": "bold yellow"}
MOST_BYTES = 4_000_000
"""Of standard input."""
MARKS = {"supported": "+", "refuted": "-", "mixed": "±", "unknown": "?"}

Claim = Annotated[
    str | None, typer.Argument(metavar="CLAIM", help="The claim, as a full sentence.", show_default=False)
]
ReceiptFile = Annotated[
    Path | None, typer.Option("--receipt", metavar="FILE", help="Check the receipt of an answer instead of a claim.")
]
CheckedFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A file of any format that can be ingested; - for text on standard input.")
]
MostSentences = Annotated[int, typer.Option("--most", min=1, max=500, help="Maximum number of sentences to check.")]
Passages = Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of passages to read per statement.")]


async def verify(
    session: CliSession,
    claim: Claim = None,
    k: Passages = 10,
    mode: ModeOption = None,
    where: Where = None,
    receipt: ReceiptFile = None,
) -> int:
    """Check a claim against the knowledge base.

    Shows the sentences for and against it.
    """
    if receipt and claim is None:
        return await check_receipt_file(session, receipt)
    if receipt or claim is None:
        wrong = "give a claim or a receipt, not both" if receipt else "give a claim or a receipt"
        raise InputError(wrong, hint="ragstone verify CLAIM, or ragstone verify --receipt FILE")
    filters = read_where(where)
    from ragstone.query.context import checked_query

    checked_query(claim, None, "claim")
    async with session.workspace(warm="search") as workspace, session.slow_notice(MODEL_WAIT):
        verdict = await workspace.verify(claim, k=k, mode=mode, where=filters)
    from ragstone.schemas.answers import VerdictSchema

    session.show(VerdictSchema.of(verdict), lambda out: draw_verdict(out, verdict))
    session.warn(f"degraded: {note}" for note in verdict.degraded)
    return search_code(verdict.evidence, verdict.degraded)


async def check(
    session: CliSession,
    file: CheckedFile,
    k: Passages = 10,
    mode: ModeOption = None,
    where: Where = None,
    most: MostSentences = 500,
) -> int:
    """Check a whole text, sentence by sentence.

    Shows whether the knowledge base confirms or refutes each sentence, or leaves it open.
    """
    given = read_stdin() if file == "-" else ""
    filters = read_where(where)
    async with session.workspace(warm="search") as workspace:
        with query_progress(session, "sentences") as advance:
            call = partial(workspace.verify_text, given) if given else partial(workspace.verify_file, file)
            checked = await call(k=k, mode=mode, where=filters, most=most, on_progress=advance)
    from ragstone.schemas.answers import CheckedTextSchema

    session.show(CheckedTextSchema.of(checked), lambda out: draw_text(out, checked))
    session.warn(f"degraded: {note}" for note in checked.degraded)
    return search_code(any(claim.verdict.evidence for claim in checked.claims), checked.degraded)


def read_stdin() -> str:
    """Return the text on standard input. Raises `InputError` where there is none."""
    from ragstone.serve.cli.signals import interruptible

    with interruptible():
        text = sys.stdin.buffer.read(MOST_BYTES).decode("utf-8", "replace")
    if not text.strip():
        raise InputError("there is no text on standard input", hint="ragstone check FILE reads a file")
    return text


def draw_text(out: Console, checked: CheckedText) -> None:
    """Draw each sentence with its outcome and the best evidence about it, then how many there are of each."""
    for claim in checked.claims:
        where = f"page {claim.page}" if claim.page else f"line {claim.line}"
        head = text(f"{claim.outcome:<9} ", OUTCOME_COLOURS[claim.outcome]).append(f"{where}: ", "dim not bold")
        out.print(head.append(one_line(claim.verdict.claim), "not bold"))
        for item in claim.verdict.evidence[:1] if claim.outcome != "open" else ():
            draw_evidence(out, item)
    if checked.claims:
        out.print()
    out.print(text(summarize(checked), "bold"))


def summarize(checked: CheckedText) -> str:
    """Say in a line how many sentences are confirmed, refuted and open, and how many were not checked."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in checked.outcomes.items())
    said = f"{pluralize(len(checked.claims), 'sentence')} checked: {counts}"
    if checked.unchecked:
        said += f"; {checked.unchecked} not checked, because there are too many or they are too long"
    return f"{said}; {checked.skipped} state nothing" if checked.skipped else said


def draw_verdict(out: Console, verdict: Verdict) -> None:
    """Draw the status, each part of a compound claim, then the evidence: what decides, or else what comes near."""
    head = text(verdict.status, COLOURS[verdict.status])
    said = SUPPORTED[verdict.status] if verdict.stance == "supported" else SAID[verdict.stance]
    sources = f"{verdict.sources} independent source{'' if verdict.sources == 1 else 's'}"
    out.print(head.append(f" ({verdict.confidence}): {said}; {sources}", "not bold"))
    if len(verdict.parts) > 1:
        for part in verdict.parts:
            out.print(text(f"  {MARKS[part.stance]} {part.status:<10} ").append(one_line(part.text), "italic"))
    for item in select_evidence(verdict):
        out.print()
        draw_evidence(out, item)


def select_evidence(verdict: Verdict) -> Sequence[Evidence]:
    """Return the evidence to show: what decides, or else all of it, of which nothing counts against the claim."""
    if verdict.stance == "unknown":
        return [
            replace(item, stance="unknown", failed=()) if item.stance == "refuted" else item
            for item in verdict.evidence
        ]
    return [item for item in verdict.evidence if item.stance != "unknown"] or verdict.evidence


def draw_evidence(out: Console, item: Evidence) -> None:
    """Stance and place, address, the sentence, and what speaks against relying on it."""
    from rich.padding import Padding

    out.print(text(f"{MARKS[item.stance]} ", "cyan").append(place(item.title, item.section, item.page), "bold"))
    lines = [text(one_line(item.uri), "dim"), text(f"“{one_line(item.text)}”", "italic")]
    lines += [text(reason, "yellow") for reason in item.failed]
    for line in lines:
        out.print(Padding(line, (0, 0, 0, 2), expand=False))


STATES = {
    "stands": "stands word for word",
    "moved": "stands word for word, elsewhere in its document",
    "changed": "is no longer in its document",
    "gone": "is gone with its document",
    "elsewhere": "is on the internet and cannot be checked here",
}


async def check_receipt_file(session: CliSession, path: Path) -> int:
    """Show whether a receipt still holds; the exit code is 0 when it does, 3 when not, 1 for a forged one."""
    from ragstone.answer.receipts.make import load_receipt

    receipt = load_receipt(path)
    async with session.workspace() as workspace:
        report = await workspace.receipts.check(receipt)
    from ragstone.schemas.receipts import ReceiptReportSchema

    session.show(ReceiptReportSchema.of(report), lambda out: draw_report(out, report))
    session.warn(f"{path}: {sign}" for sign in report.tampering)
    if not report.intact:
        return FAILURE
    return OK if report.holds else PARTIAL


def draw_report(out: Console, report: ReceiptReport) -> None:
    """Draw whether a receipt holds, each sentence with what became of it, then where its quotes are now."""
    out.print(text(_verdict_on_receipt(report), "bold green" if report.holds else "bold red"))
    out.print(text(f"{one_line(report.question)} ({report.moment})", "dim"))
    for difference in report.differences:
        out.print(text("! ", "red").append(one_line(difference)))
    for sentence in report.sentences:
        mark, style = ("+ ", "green") if sentence.holds else ("- ", "red")
        out.print(text(mark, style).append(one_line(sentence.text)))
        if sentence.reason:
            out.print(text(f"  {sentence.reason}", "yellow"))
    for citation in report.citations:
        out.print(text(f"[{citation.n}] ", "cyan").append(f"{one_line(citation.title)} ", "bold"), end="")
        out.print(text(STATES[citation.state], "dim"))
    for part in report.unanswered:
        out.print(text(f"It left open: {one_line(part)}?", "dim"))


def _verdict_on_receipt(report: ReceiptReport) -> str:
    """Say whether the receipt holds and why not, how many sentences do, and whether it was changed."""
    held = sum(sentence.holds for sentence in report.sentences)
    sentences = f"still holding: {held} of {pluralize(len(report.sentences), 'sentence')}"
    told = sentences if report.sentences else "it claimed nothing"
    if report.sentences and not report.answered:
        told = f"no answer, only what comes near; {sentences}"
    said = f"{told}; the receipt is {'intact' if report.intact else 'NOT as it was made'}"
    if report.holds:
        return said
    why = [
        reason
        for fails, reason in (
            (not report.intact, "it was changed after it was made"),
            (held < len(report.sentences), "the documents no longer support every sentence of it"),
            (report.differences, "what it cites is called otherwise here"),
        )
        if fails
    ]
    return f"does not hold: {', and '.join(why)} ({said})"
