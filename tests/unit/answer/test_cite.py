from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.styles import NO_EVIDENCE, Writer, check_format, cited_sources, dangling_marks, extract_marks
from ragstone.core.answers import Answer, Citation, Sentence
from ragstone.core.errors import SettingsError
from ragstone.core.types import Hit, PageStart

TEXT = "Pumps stop at 80 degrees. Fans never stop."
MakeHit = Callable[..., Hit]


def written(*statements: Statement, citation_format: str = "[{index}]") -> Answer:
    writer = Writer(citation_format=citation_format)
    for statement in statements:
        writer.add(statement)
    return writer.finish("?")


@pytest.fixture
def answer(make_hit: MakeHit) -> Answer:
    hit = make_hit(TEXT, start=100, page=4, section="Limits", uri="manual.pdf", title="Manual")
    pumps, fans = Quote(hit, 0, 25), Quote(hit, 26, 42)
    writer = Writer()
    writer.add(Statement("Fans run on.", "supported", (fans, pumps)))
    writer.add(Statement("Pumps stop at 80 degrees.", "quoted", (pumps,)))
    return writer.finish("When do pumps stop?", degraded=["dense arm"])


@pytest.mark.req("R-ANS-13", "R-TST-30")
def test_citations_are_numbered_by_first_use_and_say_where_they_stand(answer: Answer) -> None:
    assert answer.citations == (
        Citation(1, "Fans never stop.", "doc:100", "doc", "Manual", "manual.pdf", 4, "Limits", 126, 142),
        Citation(2, "Pumps stop at 80 degrees.", "doc:100", "doc", "Manual", "manual.pdf", 4, "Limits", 100, 125),
    )
    assert answer.sentences == (
        Sentence("Fans run on.", "supported", (1, 2)),
        Sentence("Pumps stop at 80 degrees.", "quoted", (2,)),
    )
    assert (answer.status, answer.degraded) == ("answered", ("dense arm",))


@pytest.mark.req("R-ANS-01")
def test_marks_follow_each_sentence(answer: Answer) -> None:
    assert answer.answer == "Fans run on. [1][2] Pumps stop at 80 degrees. [2]"


@pytest.mark.req("R-ANS-01")
def test_the_mark_can_be_set(make_hit: MakeHit) -> None:
    hit = make_hit(TEXT)
    statement = Statement("Pumps stop.", "supported", (Quote(hit, 0, 25),))
    answer = written(statement, citation_format="(source {index})")
    assert answer.answer == "Pumps stop. (source 1)"
    assert extract_marks(answer.answer, "(source {index})") == [1]


def test_a_format_without_a_number_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"answer\.citation_format '\[x\]'"):
        check_format("[x]")


@pytest.mark.req("R-ANS-12")
def test_no_statement_means_no_evidence() -> None:
    assert Writer().finish("Why?") == Answer("Why?", NO_EVIDENCE, (), (), "no_evidence")


def test_overlapping_passages_give_one_citation(make_hit: MakeHit) -> None:
    whole, tail = make_hit(TEXT), make_hit(TEXT[10:], start=10)
    statements = [
        Statement("Fans go on.", "supported", (Quote(whole, 26, 42),)),
        Statement("They never stop.", "supported", (Quote(tail, 16, 32),)),
    ]
    answer = written(*statements)
    assert [citation.n for citation in answer.citations] == [1]
    assert [sentence.citations for sentence in answer.sentences] == [(1,), (1,)]


def test_marks_and_links_of_the_source_do_not_reach_the_text(make_hit: MakeHit) -> None:
    text = "As [Smith](https://a.example)\nshowed [12], items[0] is [3] ."
    answer = written(Statement(text, "quoted", (Quote(make_hit(text), 0, len(text)),)))
    assert answer.answer == "As Smith showed, items[0] is. [1]"
    assert answer.sentences[0].text == answer.citations[0].quote == text


@pytest.mark.parametrize(
    ("text", "marks"), [("", []), ("a [1] b [2][1]", [1, 2, 1]), ("items[3] and [ 4 ]", [4]), ("[x] [1.5] [] [-1]", [])]
)
def test_extract_marks(text: str, marks: list[int]) -> None:
    assert extract_marks(text) == marks


@pytest.mark.req("R-ANS-03")
def test_marks_lead_to_their_sources(answer: Answer) -> None:
    sources = cited_sources("It stops [2].", answer.citations)
    assert {n: source.quote for n, source in sources.items()} == {2: "Pumps stop at 80 degrees."}
    assert sources[2].chunk_id == "doc:100"


@pytest.mark.req("R-ANS-04")
def test_marks_that_lead_nowhere_are_found(answer: Answer) -> None:
    assert dangling_marks("One [1]. Nine [9][9]. Zero [0].", answer.citations) == [9, 0]
    assert dangling_marks(answer.answer, answer.citations) == []


@pytest.mark.parametrize(
    ("starts", "page"), [((), 4), ((PageStart(127, 5),), 4), ((PageStart(110, 5), PageStart(126, 7)), 7)]
)
def test_a_quote_has_the_page_it_begins_on(make_hit: MakeHit, starts: tuple[PageStart, ...], page: int) -> None:
    hit = make_hit(TEXT, start=100, page=4, page_starts=starts)
    assert Quote(hit, 26, 42).citation(1).page == page
