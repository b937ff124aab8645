from __future__ import annotations

from pathlib import Path

import pytest

from ragstone.core.errors import SettingsError
from ragstone.query.transform.synonyms import synonyms
from ragstone.query.transform.wordnet import PARTS_OF_SPEECH, WordNet

LICENCE = "  1 This is the licence, which every file begins with.\n  2 It goes on for some lines.\n"
SYNSETS = {
    "noun": [["car", "auto", "motorcar"], ["railcar", "car"], ["child", "kid"], ["box"], ["ice_cream", "gelato"]],
    "verb": [["repair", "mend", "fix"], ["box", "package"], ["bake"]],
    "adj": [["quick", "speedy(a)"]],
    "adv": [["quickly", "apace"]],
}
"""Words per synset. The first synset of a word is its most frequent sense."""


def write_database(folder: Path) -> None:
    """Files in WordNet's own format: an index line ends with byte offsets into the data file."""
    for part, synsets in SYNSETS.items():
        data = LICENCE
        senses: dict[str, list[int]] = {}
        for words in synsets:
            for word in words:
                senses.setdefault(word.partition("(")[0], []).append(len(data))
            listed = " ".join(f"{word} 0" for word in words)
            data += f"{len(data):08d} 06 {part[0]} {len(words):02x} {listed} 001 @ 00001740 n 0000 | gloss of it  \n"
        lines = [
            f"{word} {part[0]} {len(offsets)} 2 @ ~ {len(offsets)} 1 {' '.join(f'{n:08d}' for n in offsets)}  \n"
            for word, offsets in sorted(senses.items())
        ]
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(LICENCE + "".join(lines))


@pytest.fixture
def wordnet(tmp_path: Path) -> WordNet:
    write_database(tmp_path)
    return WordNet(tmp_path)


@pytest.mark.req("R-QRY-10")
@pytest.mark.parametrize(
    ("term", "others"),
    [
        ("car", ("auto", "motorcar")),
        ("motorcar", ("car", "auto")),
        ("railcar", ("car",)),
        ("cars", ("auto", "motorcar")),
        ("boxes", ("package",)),
        ("repairing", ("mend", "fix")),
        ("quicker", ("speedy",)),
        ("quickly", ("apace",)),
        ("ice cream", ("gelato",)),
        ("gelato", ("ice cream",)),
        ("bake", ()),
        ("aardvark", ()),
        ("zebra", ()),
        ("this", ()),
        ("", ()),
        ("1", ()),
        ("café", ()),
        ("car\n", ()),
    ],
)
def test_the_other_words_of_the_most_frequent_sense(wordnet: WordNet, term: str, others: tuple[str, ...]) -> None:
    assert wordnet.others(term) == others


@pytest.mark.req("R-QRY-10", "R-FUT-01")
def test_a_query_gets_synonyms(wordnet: WordNet) -> None:
    assert synonyms("Where can I repair the car?", [wordnet]).words == ("mend", "fix", "auto", "motorcar")


@pytest.mark.parametrize("missing", [f"{kind}.{part}" for kind in ("index", "data") for part in PARTS_OF_SPEECH])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, missing: str) -> None:
    write_database(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(SettingsError, match=f"no readable file '{missing}'") as caught:
        WordNet(tmp_path)
    assert "wordnet" in caught.value.hint


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    write_database(tmp_path)
    (tmp_path / "data.verb").write_text("")
    with pytest.raises(SettingsError, match=r"data\.verb"):
        WordNet(tmp_path)


@pytest.mark.parametrize("line", ["car", "car n x", "car n 1 0 1 1 99999999", "car n 1 0 1 1 00000002"])
def test_a_damaged_index_gives_no_words(tmp_path: Path, line: str) -> None:
    write_database(tmp_path)
    (tmp_path / "index.noun").write_text(f"{LICENCE}{line}\n")
    assert WordNet(tmp_path).others("car") == ()
