"""The lexical analyzer: the same terms for a document and for whoever looks for it."""

from __future__ import annotations

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.language import analyzer
from ragstone.language.analyzer import FINGERPRINT, MAX_TERM, analyze, analyze_query, find_terms


@pytest.mark.parametrize(
    ("identifier", "terms"),
    [
        ("moduleControllerCreate", ["modulecontrollercreate", "modulecontrollercr", "modul", "control", "creat"]),
        ("hook.player.connected", ["hook.player.connected", "hook", "player", "connect"]),
        ("SKU-12345", ["sku-12345", "sku", "12345"]),
        ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
        ("v1.2.3", ["v1.2.3", "v1", "v", "1", "2", "3"]),
        ("C++", ["c++", "c"]),
        ("C#", ["c#", "c"]),
        ("@takaro/lib", ["@takaro/lib", "takaro", "lib"]),
        ("lib-x/src/hook.ts", ["lib-x/src/hook.ts", "lib-x", "hook.ts", "lib", "x", "src", "hook", "ts"]),
        ("jo.doe@corp.example", ["jo.doe@corp.example", "jo.doe", "corp.example", "jo", "doe", "corp", "exampl"]),
        ("std::vector", ["std::vector", "std", "vector"]),
        ("XMLHttpRequest", ["xmlhttprequest", "xml", "http", "request"]),
        ("p53", ["p53", "p", "53"]),
        ("O'Brien", ["o'brien", "o", "brien"]),
    ],
)
@pytest.mark.req("R-HYB-17")
def test_an_identifier_stays_whole_and_is_split(identifier: str, terms: list[str]) -> None:
    assert analyze(identifier) == terms
    assert set(terms) <= set(analyze(f"Call ({identifier}), then wait."))


@pytest.mark.req("R-HYB-17")
@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("moduleControllerCreate", "modulecontrollercreate"),
        ("moduleControllerCreate", "create a module controller"),
        ("hook.player.connected", "player connected hook"),
        ("SKU-12345", "sku-12345"),
        ("SKU-12345", "12345"),
    ],
)
def test_a_query_for_the_whole_or_its_parts_meets_the_name(name: str, query: str) -> None:
    assert set(analyze_query(query)) <= set(analyze(name))


@pytest.mark.req("R-HYB-17")
def test_a_neighbouring_identifier_shares_parts_but_not_the_whole() -> None:
    assert "sku-12345" not in analyze("SKU-12346")
    assert "modulecontrollercreate" not in analyze("moduleControllerCreated")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The running dogs", ["run", "dog"]),
        ("RUNNING Dogs", ["run", "dog"]),
        ("Café naïve Straße ﬁne", ["cafe", "naiv", "strass", "fine"]),
        ("Ｆｕｌｌ ｗｉｄｔｈ", ["full", "width"]),
        ("Ærø Łódź", ["aero", "lodz"]),
        ("soft\u00adware", ["softwar"]),
        ("patient's don't we’ll", ["patient"]),
        ("mRNAs DNAs", ["mrna", "m", "rna", "dna"]),
        ("U.S. and US", ["us", "us"]),
        ("e.g. this, i.e. that: x", ["x"]),
        ("1,000 mg, 3.5 or 0.05", ["1000", "mg", "3.5", "0.05"]),
        ("on 1,2", ["1", "2"]),
        ("α-synuclein β", ["α-synuclein", "α", "synuclein", "β"]),
        ("東京都に 猫", ["東京", "京都", "都に", "猫"]),
        ("哈哈哈哈", ["哈哈", "哈哈", "哈哈"]),
        ("한국어", ["한국", "국어"]),
        ("ガ行", ["ガ行"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("see https://a.example/b?c=1", ["see", "https", "a.example/b", "a.example", "exampl", "b", "c", "1"]),
    ],
)
def test_words(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


def test_a_query_is_lower_cased_freed_of_stop_words_and_stemmed() -> None:
    assert analyze_query("What are the EFFECTS of Vaccinations?") == ["effect", "vaccin"]


@given(st.text(st.characters() | st.sampled_from("aé\u0301\u0338\u1161ᄀ≠ﬁ’"), max_size=60))
def test_folding_run_by_run_equals_folding_the_whole_text(text: str) -> None:
    plain = analyzer.LOOKALIKE.sub(lambda match: analyzer.LOOKALIKES[match.group()], analyzer.SYMBOL_RUN.sub(" ", text))
    whole = unicodedata.normalize("NFC", analyzer.MARKS.sub("", unicodedata.normalize("NFKD", plain)))
    assert analyzer.fold(text) == whole


@pytest.mark.req("R-NRM-12")
@settings(deadline=None)
@given(st.text(max_size=80))
def test_a_document_and_a_query_are_analysed_alike(text: str) -> None:
    assert analyze_query(text) == list(dict.fromkeys(analyze(text)))


def test_repeats_are_kept_for_a_document_and_dropped_for_a_query() -> None:
    assert analyze("dog dogs dog") == ["dog", "dog", "dog"]
    assert analyze_query("dog dogs dog") == ["dog"]


def test_nothing_but_stop_words_is_kept() -> None:
    assert analyze_query("To be or not to be") == ["to", "be", "or", "not"]


@pytest.mark.parametrize("text", ["", "   ", "—…!?", "\u0301\u0323" * 40])
def test_no_words_no_terms(text: str) -> None:
    assert analyze(text) == []


@settings(deadline=None)
@given(st.text(max_size=300))
def test_terms_are_short_free_of_space_and_stable(text: str) -> None:
    terms = analyze(text)
    assert all(0 < len(term) <= MAX_TERM and not any(map(str.isspace, term)) for term in terms)
    assert terms == analyze(text)


WORDS = (
    "Dying flies skies ties generously U.S.A. moduleControllerCreate max_wal_size C++ @home don't 1,234 relational "
    "ponies caresses hoping running sensibility etc/hosts the who naïve Straße 漢字 DNAs"
)
words = st.sampled_from(WORDS.split())


@given(st.lists(words | st.text(max_size=12), max_size=12), st.lists(words, max_size=4), st.sampled_from(" \n\t."))
def test_the_terms_that_are_looked_for_are_those_that_analyzing_finds(
    said: list[str], asked: list[str], between: str
) -> None:
    text, terms = between.join(said), set(analyze(" ".join(asked)))
    assert find_terms(terms, text) == terms & set(analyze(text))


@pytest.mark.parametrize("piece", ["a.", "a", "aB", "-", "@", "a+", "1,", "é", "漢", "a1", "a/", "'", "e\u0301\u0323"])
def test_a_long_hostile_text_is_bounded(piece: str) -> None:
    assert all(len(term) <= MAX_TERM for term in analyze(piece * 20_000))


def test_the_token_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer, "CACHED_TOKENS", 10)
    assert analyze(" ".join(f"x{number}" for number in range(100)))[-1] == "99"
    assert len(analyzer._known) <= 10


def test_threads_agree() -> None:
    texts = [f"running{number} connections-{number}" for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(analyze, texts)) == [analyze(text) for text in texts]


def test_the_fingerprint_names_the_stemmer() -> None:
    assert FINGERPRINT.startswith("ragstone-2+snowball-")


def test_no_group_of_several_characters_is_repeated_possessively() -> None:
    """Python before 3.11.5, as in Debian 12, then keeps what a last, broken-off round of the group has matched."""
    package = Path(analyzer.__file__).parents[1]
    lines = [line for file in package.rglob("*.py") for line in file.read_text("utf-8").splitlines()]
    found = [line for line in lines if re.search(r"\)(?:[*+?]|\{\{?\d*,?\d*\}\}?)\+(?![+\]])", line)]
    assert found == ['LETTERS = rf"(?:[^\\W_{UNSPACED}]|[{INDIC}])++"']
