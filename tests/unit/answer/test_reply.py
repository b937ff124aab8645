from __future__ import annotations

import pytest

from ragstone.answer.reply import declines, read_reply


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


@pytest.mark.parametrize(
    "reply", ["NO ANSWER", "no answer.", " **NO ANSWER** ", "<think>Hm.</think>NO ANSWER"]
)
def test_declining(reply: str) -> None:
    assert declines(reply)


@pytest.mark.parametrize("reply", ["", "No answer is 42 [1].", "Pumps stop [1]. NO ANSWER"])
def test_not_declining(reply: str) -> None:
    assert not declines(reply)
