from __future__ import annotations

import pytest

from ragstone.answer.sanitize import has_address, has_image, has_link, sanitize, strip_hidden


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u00ad", "\U000e0041", "\ufe0f", "\x00", "\x1b"]
)
def test_hidden_characters_are_stripped(hidden: str) -> None:
    assert strip_hidden(f"a{hidden}b\tc\nd") == "ab\tc\nd"


def test_plain_keeps_the_words_of_links_and_folds_white_space() -> None:
    text = 'See  **all of** [the\tguide](https://a.example/x "t") and ![a chart](c.png)\nfor items[1].'
    assert sanitize(text) == "See all of the guide and a chart for items[1]."


@pytest.mark.parametrize(
    "text",
    [
        "go to https://evil.example/a",
        "go to HTTP://evil.example",
        "go to www.evil.example",
        "go to evil.example/steal?d=1",
        "go to //evil.example/steal",
        "write to mailto:a@b.example",
        "open data:text/html,hello",
        "open javascript:alert(1)",
        "open custom+scheme://x",
    ],
)
def test_addresses_are_seen(text: str) -> None:
    assert has_address(text)
    assert has_link(text)


@pytest.mark.parametrize(
    "text",
    [
        "Call hook.player.connected in Node.js 22.",
        "The file config.d/site.yaml and/or app.py holds it.",
        "Note: data is kept for 3 days; ratio 3:1.",
        "Use items[1] or items[2].",
        "a < b and b > c",
    ],
)
def test_names_and_paths_are_not_links(text: str) -> None:
    assert not has_link(text)


@pytest.mark.parametrize("text", ["[a][b]", "[a]: x", "see [a](b.md)", "<b>bold</b>", "<!-- note -->", "<IMG src=x>"])
def test_markup_counts_as_a_link(text: str) -> None:
    assert has_link(text)
    assert not has_address(text)


@pytest.mark.parametrize("text", ["![x](y)", "![][x]", "<img src=y>", "<IFRAME src=y>", "<script>"])
def test_images_and_active_tags_are_seen(text: str) -> None:
    assert has_image(text)


def test_a_plain_link_is_no_image() -> None:
    assert not has_image("see [a](https://a.example) <b>now</b>!")
