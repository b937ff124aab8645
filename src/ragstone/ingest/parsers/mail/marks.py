"""The marks by which mail programs set off what another person wrote, in many languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Parsed

Role = Literal["from", "date", "to", "subject", "other"]
MailMark = Literal["forward", "original"]

SENT = "The mail was sent"
"""Begins the sentence of the parser on who sent a mail to whom, and when."""
LONGEST_LINE = 400
"""No mark is longer than this: what stands behind it in a line is not looked at."""
_LONGEST_BLOCK = 40
_LONGEST_FOLD = 4
_FORWARD = frozenset({
    "forwarded message", "weitergeleitete nachricht", "message transféré", "mensaje reenviado", "messaggio inoltrato",
    "doorgestuurd bericht", "mensagem encaminhada", "przekazana wiadomość", "videresendt meddelelse",
    "vidarebefordrat meddelande", "пересылаемое сообщение", "转发的邮件", "転送されたメッセージ",
})  # fmt: skip
_BEGIN_FORWARD = frozenset({
    "begin forwarded message", "anfang der weitergeleiteten nachricht", "anfang der weitergeleiteten e-mail",
    "début du message transféré", "début du message réexpédié", "inicio del mensaje reenviado",
    "inizio messaggio inoltrato", "begin doorgestuurd bericht", "início da mensagem encaminhada",
})  # fmt: skip
_ORIGINAL = frozenset({
    "original message", "ursprüngliche nachricht", "originalnachricht", "original-nachricht", "message d'origine",
    "message original", "mensaje original", "messaggio originale", "oorspronkelijk bericht", "mensagem original",
    "oryginalna wiadomość", "wiadomość oryginalna", "původní zpráva", "oprindelig meddelelse",
    "ursprungligt meddelande", "исходное сообщение", "原始邮件", "元のメッセージ",
})  # fmt: skip
_LABELS: dict[Role, str] = {
    "from": "from|von|de|da|van|od|fra|från|от|发件人|差出人|보낸 사람",
    "date": "sent|date|gesendet|datum|envoyé|enviado|enviada|fecha|inviato|data|verzonden|wysłano|odesláno|sendt|dato"
    "|skickat|отправлено|дата|发送时间|日期|送信日時|보낸 날짜",
    "to": "to|an|à|para|a|aan|do|komu|til|till|кому|收件人|宛先|받는 사람",
    "subject": "subject|betreff|objet|asunto|assunto|oggetto|onderwerp|temat|předmět|emne|ämne|тема|主题|件名|제목",
    "other": "cc|bcc|kopie|kopi|kopia|dw|copie|reply-to|antwort an|organization|importance|wichtigkeit|attachments",
}
_ROLES: dict[str, Role] = {word: role for role, words in _LABELS.items() for word in words.split("|")}
_COLON = re.compile("[:：]")
_OPENING = re.compile(r"\W*(?:(?:On|Am|Le|El|Il|Op|Em|Den|Dne|Dnia|W dniu)\b|\d{4}[年년])", re.IGNORECASE)
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|a écrit|escribió|ha scritto|schreef|escreveu|skrev"
    r"|napisał(?:\(a\)|a)?|napsal(?:\(a\)|a)?|написал[аи]?|пишет)(?!\w)|写道|書きました|작성",
    re.IGNORECASE,
)
_MOMENT = re.compile(r"\d{4}|\d:\d\d")


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """The header lines that a mail program copies above a message it quotes or forwards."""

    end: int
    """The line behind its last one."""
    subject: str


def mark_of(line: str) -> MailMark | None:
    """Return what a line announces, such as `---------- Forwarded message ---------`; None for an ordinary line."""
    words = line[:LONGEST_LINE].strip().casefold()
    if words.startswith("--") and words.endswith("--"):
        words = words.strip("- \t")
        return "forward" if words in _FORWARD else "original" if words in _ORIGINAL else None
    return "forward" if words.endswith(":") and words.rstrip(": ") in _BEGIN_FORWARD else None


def header_block(lines: Sequence[str], first: int) -> HeaderBlock | None:
    """Return the copied headers that begin in this line: at least who, about what, and when or to whom."""
    if _role(lines[first]) not in ("from", "date", "subject"):
        return None
    seen: dict[Role, str] = {}
    end = first
    for place in range(first, min(len(lines), first + _LONGEST_BLOCK)):
        role = _role(lines[place])
        if role in seen and role != "other":
            break  # the next message's headers
        if role is not None:
            seen.setdefault(role, _COLON.split(lines[place][:LONGEST_LINE], maxsplit=1)[1].strip("*_| \t"))
            end = place + 1
        elif place - end >= _LONGEST_FOLD:
            break
    complete = "from" in seen and "subject" in seen and ("date" in seen or "to" in seen)
    return HeaderBlock(end, seen["subject"]) if complete else None


def begins_message(text: str) -> bool:
    """Return whether another message begins with this block of text: its mark or its copied headers."""
    lines = text[: _LONGEST_BLOCK * LONGEST_LINE].split("\n")
    return mark_of(lines[0]) is not None or header_block(lines, 0) is not None


def without_sending(parsed: Parsed) -> str:
    """Return the text without the sentence on who sent it and when, in which copies of a mail differ."""
    for block in parsed.blocks:
        if block.kind == "table" and parsed.text.startswith(SENT, block.start):
            return parsed.text[: block.start] + parsed.text[block.end :]
    return parsed.text


def attribution_lines(lines: Sequence[str]) -> int:
    """Return how many of the last lines say who wrote the text below; 0 when none does."""
    if not lines or not lines[-1][-LONGEST_LINE:].rstrip().endswith((":", "：")):
        return 0
    for count in range(min(3, len(lines)), 0, -1):
        said = " ".join(lines[-count:])
        if len(said) <= LONGEST_LINE and _OPENING.match(said) and _WROTE.search(said) and _MOMENT.search(said):
            return count
    last = lines[-1]
    return 1 if len(last) <= LONGEST_LINE and _WROTE.search(last) else 0


def is_dated(said: str) -> bool:
    """Return whether an attribution names a moment as programs do; people who write `he wrote:` do not."""
    return bool(_OPENING.match(said) and _MOMENT.search(said))


def _role(line: str) -> Role | None:
    label = _COLON.split(line[:60], maxsplit=1)
    return _ROLES.get(label[0].strip("*_| \t").casefold()) if len(label) == 2 else None
