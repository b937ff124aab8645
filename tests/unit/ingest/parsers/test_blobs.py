from __future__ import annotations

import base64
import email.message
import json
import random
from time import process_time

import pytest

from ragstone.core.errors import EmptyDocument
from ragstone.ingest.parsers.blobs import drop_blobs
from ragstone.ingest.parsers.dispatch import parse

DATA = random.Random(7).randbytes(900)
BASE64 = base64.b64encode(DATA).decode()
LINES = base64.encodebytes(DATA).decode()
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{LINES}-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "blob",
    [
        BASE64,
        LINES,
        KEY,
        f"data:image/png;base64,{BASE64}",
        base64.urlsafe_b64encode(DATA).decode(),
        DATA.hex(),
        DATA.hex(" "),
        DATA.hex(":").upper(),
    ],
)
def test_encoded_data_is_left_out(blob: str) -> None:
    text, count = drop_blobs(f"The boat\n{blob}\nsails.")
    assert (text.split(), count) == (["The", "boat", "sails."], 1)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/harbour/rules/for-boats-that-come-in-late-and-leave-early/2026/11/17/with-a-long-name-and-more",
        "/usr/lib/x86_64-linux-gnu/perl5/auto/Harbour/Boats/Moored/With/Ropes/And/Chains/For/The/Night/Of/2026/libharbour.so",
        "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsvorstandssitzungsprotokoll"
        * 2,
        f"SHA-512: {DATA[:64].hex()}",
        f"SHA256 Fingerprint={DATA[:32].hex(':').upper()}",
        "commit 6ebd0e2ab0f1c2d3e4f5a6b7c8d9e0f1a2b3c4d5",
        "THE_LONGEST_NAME_OF_A_SETTING_THAT_ANYBODY_HAS_EVER_WRITTEN_DOWN_IN_A_FILE_OF_SETTINGS_AND_STILL_REMEMBERS_IT",
        "=" * 200 + "\n" + "-" * 200 + "\n" + "_" * 200 + "\n" + "a" * 300,
        "データ" * 100,
        "data: the words of it, " * 20,
    ],
)
def test_words_names_and_sums_stay(text: str) -> None:
    assert drop_blobs(text) == (text, 0)


def mail() -> bytes:
    message = email.message.EmailMessage()
    message["Subject"] = "Keys"
    message["From"] = "ann@example.org"
    message.set_content(f"Here it is:\n\n{LINES}\nRegards")
    return message.as_bytes()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", f"Before.\n\n{KEY}\n\nAfter.".encode()),
        ("a.md", f"Before.\n\n![boat](data:image/png;base64,{BASE64})\n\n{LINES}\n\nAfter.".encode()),
        ("a.html", f"<p>Before.<p>{LINES}<p>data:text/plain;base64,{BASE64}<pre>{KEY}</pre>".encode()),
        ("a.json", json.dumps({"name": "boat", "picture": BASE64, "other": [LINES]}).encode()),
        ("a.csv", f"boat,picture\nAda,{BASE64}\n".encode()),
        ("a.rst", f"Before.\n\n::\n\n  {KEY.replace(chr(10), chr(10) + '  ')}\n".encode()),
        ("a.eml", mail()),
    ],
)
def test_no_format_lets_it_into_the_index(name: str, content: bytes) -> None:
    parsed = parse(content, name)
    shown = "".join(parsed.text.split())
    assert not any(BASE64[start : start + 30] in shown for start in range(0, len(BASE64) - 30, 30))
    assert any("encoded data" in warning for warning in parsed.warnings)


def test_a_file_of_nothing_else_is_empty() -> None:
    with pytest.raises(EmptyDocument):
        parse(KEY.encode(), "id.pem")


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN A-----" * 8_000,
        "data:" * 80_000,
        "data:a;" * 50_000,
        ("A1b" * 33 + " ") * 4_000,
        ("A1b2" * 10 + "\n") * 10_000 + "!",
        "ab " * 30_000,
        "ab:" * 30_000 + "g",
        ("ab:" * 70 + "g") * 1_000,
        "A1b" * 30_000 + "!",
    ],
)
def test_hostile_text_is_searched_in_time(text: str) -> None:
    began = process_time()
    drop_blobs(text)
    assert process_time() - began < 1
