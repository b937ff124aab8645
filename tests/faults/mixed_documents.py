"""A mixed set of documents, some of them broken: the same on every run."""

from __future__ import annotations

import io
import json
import random
import zipfile
from email.message import EmailMessage

from reportlab.pdfgen.canvas import Canvas
from tests.word_files import new_document

WORDS = [
    "ferry",
    "harbour",
    "ticket",
    "bridge",
    "winter",
    "service",
    "engine",
    "captain",
    "island",
    "timetable",
    "cargo",
    "weather",
    "lantern",
    "rope",
    "passenger",
    "crown",
    "morning",
    "evening",
    "north",
    "channel",
    "signal",
    "repair",
    "anchor",
    "deck",
    "cabin",
    "letter",
    "invoice",
    "manual",
    "storm",
    "tide",
]
KINDS = ("txt", "md", "html", "csv", "json", "eml", "docx", "pdf", "zip", "broken")


def mixed_documents(count: int) -> dict[str, bytes]:
    """Files by name: every kind in turn, one long PDF, and some that cannot be read."""
    files = {}
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        chance = random.Random(number)
        name, content = _make(kind, number, chance)
        files[name] = content
    files["long.pdf"] = _pdf([_text(random.Random(f"page {page}"), 120) for page in range(120)])
    return files


def _make(kind: str, number: int, chance: random.Random) -> tuple[str, bytes]:
    text = _text(chance, chance.randrange(40, 400))
    title = f"Document {number}"
    match kind:
        case "txt":
            return f"{number}.txt", f"{title}\n\n{text}".encode()
        case "md":
            return f"{number}.md", f"# {title}\n\n{text}\n\n## More\n\n{_text(chance, 60)}".encode()
        case "html":
            return f"{number}.html", f"<html><body><h1>{title}</h1><p>{text}</p></body></html>".encode()
        case "csv":
            rows = [f"{word},{chance.randrange(1000)}" for word in chance.sample(WORDS, 12)]
            return f"{number}.csv", "\n".join([f"name{number},value", *rows]).encode()
        case "json":
            return f"{number}.json", json.dumps({"title": title, "body": text}).encode()
        case "eml":
            return f"{number}.eml", _mail(title, text)
        case "docx":
            return f"{number}.docx", _docx(title, text)
        case "pdf":
            return f"{number}.pdf", _pdf([f"{title} {text}"])
        case "zip":
            return f"{number}.zip", _zip({f"{number}-a.txt": text, f"{number}-b.md": f"# {title}\n\n{text[:200]}"})
    return f"{number}.pdf", b"%PDF-1.7 broken " + str(number).encode()


def _text(chance: random.Random, words: int) -> str:
    said = [chance.choice(WORDS) for _ in range(words)]
    for place in range(9, words, 10):
        said[place] += "."
    return " ".join(said).capitalize() + "."


def _mail(subject: str, body: str) -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = subject, "ada@ferry.example", "ben@ferry.example"
    mail["Date"], mail["Message-ID"] = ("Mon, 2 Nov 2026 09:00:00 +0000", f"<{subject.split()[1]}@ferry.example>")
    mail.set_content(body)
    mail.add_attachment(
        f"Notes of {subject}. {body[:100]}".encode(), maintype="text", subtype="plain", filename="notes.txt"
    )
    return mail.as_bytes()


def _docx(title: str, text: str) -> bytes:
    document = new_document()
    document.add_heading(title, 1)
    document.add_paragraph(text)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _pdf(pages: list[str]) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True)
    for page in pages:
        words = page.split()
        for line, start in enumerate(range(0, len(words), 12)):
            canvas.drawString(60, 780 - 14 * line, " ".join(words[start : start + 12]))
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def _zip(members: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
    return file.getvalue()
