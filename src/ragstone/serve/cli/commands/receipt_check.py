"""`ragstone verify --receipt`: what of an answer that was given earlier still holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.render.output import counted, one_line, text
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.answers import ReceiptReport

STATES = {
    "stands": "stands word for word",
    "moved": "stands word for word, elsewhere in its document",
    "changed": "is no longer in its document",
    "gone": "is gone with its document",
    "elsewhere": "is on the internet and cannot be checked here",
}


async def check_receipt_file(session: Session, path: Path) -> int:
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
    """Whether it holds, each sentence with what became of it, then where its quotes are now."""
    out.print(text(_verdict(report), "bold green" if report.holds else "bold red"))
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


def _verdict(report: ReceiptReport) -> str:
    """Whether the receipt holds and why not, how many sentences do, and whether it is as it was made."""
    held = sum(sentence.holds for sentence in report.sentences)
    sentences = f"still holding: {held} of {counted(len(report.sentences), 'sentence')}"
    told = sentences if report.sentences else "it claimed nothing"
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
