"""`ragstone verify`: check a claim against the knowledge base, or a receipt of an earlier answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError
from ragstone.serve.cli.commands.search import MODEL_WAIT
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL, search_code
from ragstone.serve.cli.options import ModeOption, Where, read_where
from ragstone.serve.cli.render.output import one_line, place, pluralize, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.answers import Evidence, ReceiptReport, Verdict

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
MARKS = {"supported": "+", "refuted": "-", "mixed": "±", "unknown": "?"}

Claim = Annotated[
    str | None, typer.Argument(metavar="CLAIM", help="The claim, as a full sentence.", show_default=False)
]
ReceiptFile = Annotated[
    Path | None, typer.Option("--receipt", metavar="FILE", help="Check the receipt of an answer instead of a claim.")
]
Passages = Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of passages to read per statement.")]


async def verify(
    session: CliSession,
    claim: Claim = None,
    k: Passages = 10,
    mode: ModeOption = None,
    where: Where = None,
    receipt: ReceiptFile = None,
) -> int:
    """Check a claim against the knowledge base, with the sentences for and against it."""
    if receipt and claim is None:
        return await check_receipt_file(session, receipt)
    if receipt or claim is None:
        wrong = "give a claim or a receipt, not both" if receipt else "give a claim or a receipt"
        raise InputError(wrong, hint="ragstone verify CLAIM, or ragstone verify --receipt FILE")
    filters = read_where(where)
    async with session.workspace(warm=True) as workspace, session.slow_notice(MODEL_WAIT):
        verdict = await workspace.verify(claim, k=k, mode=mode, where=filters)
    from ragstone.schemas.answers import VerdictSchema

    session.show(VerdictSchema.of(verdict), lambda out: draw_verdict(out, verdict))
    session.warn(f"degraded: {note}" for note in verdict.degraded)
    return search_code(verdict.evidence, verdict.degraded)


def draw_verdict(out: Console, verdict: Verdict) -> None:
    """The status, each part of a compound claim, then the evidence."""
    head = text(verdict.status, COLOURS[verdict.status])
    said = SUPPORTED[verdict.status] if verdict.stance == "supported" else SAID[verdict.stance]
    sources = f"{verdict.sources} independent source{'' if verdict.sources == 1 else 's'}"
    out.print(head.append(f" ({verdict.confidence}): {said}; {sources}", "not bold"))
    if len(verdict.parts) > 1:
        for part in verdict.parts:
            out.print(text(f"  {MARKS[part.stance]} {part.status:<10} ").append(one_line(part.text), "italic"))
    for item in verdict.evidence:
        out.print()
        draw_evidence(out, item)


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
            (held < len(report.sentences), "not all it said would be said today"),
            (report.differences, "what it cites is called otherwise here"),
        )
        if fails
    ]
    return f"does not hold: {', and '.join(why)} ({said})"
