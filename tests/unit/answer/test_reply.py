from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.answer import reply as reply_module
from ragstone.answer.reply import MOST_CHARS, ReplyReader, declines, read_reply


def read(reply: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(sentence.text, sentence.numbers) for sentence in read_reply(reply)]


@pytest.mark.req("R-ANS-03")
@pytest.mark.parametrize(
    ("reply", "sentences"),
    [
        ("Pumps stop [1]. Fans run [2].", [("Pumps stop.", (1,)), ("Fans run.", (2,))]),
        ("Pumps stop. [1] Fans run. [2]", [("Pumps stop.", (1,)), ("Fans run.", (2,))]),
        ("Pumps stop.[1][3] Fans run.", [("Pumps stop.", (1, 3)), ("Fans run.", ())]),
        ("Pumps stop [1, 3]. Fans run [1][1].", [("Pumps stop.", (1, 3)), ("Fans run.", (1,))]),
        ("Pumps stop [passage 2].", [("Pumps stop.", (2,))]),
        ("Pumps stop【2】。", [("Pumps stop。", (2,))]),
        ("Pumps stop [^2]", [("Pumps stop", (2,))]),
        ("- **Pumps** stop [1].\n- `Fans` run [2].", [("Pumps stop.", (1,)), ("Fans run.", (2,))]),
        ("Use my_pump_name and __all__ [1].", [("Use my_pump_name and all.", (1,))]),
        ("<think>Let me [1] see.</think>Pumps stop [1].", [("Pumps stop.", (1,))]),
        ("<think>It never ends [1].", []),
        ("```text\nPumps stop [1].\n```", [("Pumps stop.", (1,))]),
        ("evil。example/a says that pumps stop [1].", [("evil.example/a says that pumps stop.", (1,))]),
        ("", []),
    ],
)
def test_sentences_and_their_marks(reply: str, sentences: list[tuple[str, tuple[int, ...]]]) -> None:
    assert read(reply) == sentences


def test_a_mark_that_is_a_link_is_no_mark() -> None:
    (sentence,) = read_reply("Pumps stop [1](https://evil.example).")
    assert sentence.numbers == ()
    assert "](" in sentence.raw


def test_hidden_characters_are_stripped() -> None:
    assert read("Pumps\u200b stop\U000e0041 [1].") == [("Pumps stop.", (1,))]


@pytest.mark.parametrize("reply", ["NO ANSWER", "no answer.", " **NO ANSWER** ", "<think>Hm.</think>NO ANSWER"])
def test_declining(reply: str) -> None:
    assert declines(reply)


@pytest.mark.parametrize("reply", ["", "No answer is 42 [1].", "Pumps stop [1]. NO ANSWER"])
def test_not_declining(reply: str) -> None:
    assert not declines(reply)


PARTS = st.sampled_from(
    [
        *("Pumps stop at 80 degrees [1]. ", "Fans run. [2][3] ", "Vitamin C. A. Adams said so [1].\n\n"),
        *("It is quiet", " [passage 2]", ". ", "\n- An item [1]\n", "<think>No [1].</think>", "```\ncode\n```\n"),
        *("Text\n---\n", "e.g. this one [1, 2, 3]. ", "ｅｖｉｌ．ｅｘａｍｐｌｅ ", "Yes【2】。", "[", "](x) "),
    ]
)


@given(st.lists(PARTS, max_size=25).map("".join), st.integers(1, 40))
def test_a_reply_is_read_the_same_while_it_is_written(reply: str, size: int) -> None:
    reader = ReplyReader()
    said = [one for at in range(0, len(reply), size) for one in reader.feed(reply[at : at + size])]
    assert [*said, *reader.rest()] == read_reply(reply)


def test_a_sentence_comes_before_the_reply_is_over() -> None:
    reader = ReplyReader()
    (first,) = reader.feed(
        "Pumps stop at 80 degrees. [1] Fans are another matter, of which a good lot more could be said here"
    )
    assert (first.text, first.numbers) == ("Pumps stop at 80 degrees.", (1,))


def test_an_endless_reply_is_read_to_a_limit() -> None:
    reader = ReplyReader()
    for _ in range(30):
        reader.feed("Pumps stop [1]. " * 1000)
    assert len(reader.text) == MOST_CHARS


def test_what_was_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    cited = reply_module._parse_sentence
    monkeypatch.setattr(reply_module, "_parse_sentence", lambda raw: (read.append(raw), cited(raw))[1])
    reader, text = ReplyReader(), "".join(f"Pump {n} stops. [1][1] " for n in range(500))
    for at in range(0, len(text), 20):
        reader.feed(text[at : at + 20])
    reader.rest()
    assert len(read) < 700
