"""Whatever is answered has a receipt that holds while nothing has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.unit.answer.receipts import FACTS, checked, live

from ragstone.answer.ask import Answerer
from ragstone.answer.receipts.check import LiveDocument
from ragstone.answer.receipts.make import Wording, make_receipt
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit
from ragstone.settings.answers import AnswerSettings
from ragstone.testing.fakes import FakeLLM

PUMPS = (
    "Our pumps are sold in blue. The pump stops at a temperature of 80 degrees, but the fan does not. "
    "If the oil is low, the pump stops at once. The valve was opened before the test began."
)
FANS = "A fan draws 40 watts. Fans never stop at 80 degrees."
REPLIES = [
    "The pump stops at 80 degrees [1].",
    "The pump stops at a temperature of 80 degrees, but the fan does not [1][2]. A fan draws 40 watts [2].",
    "Pumps are blue and stop at 80 degrees [1]. Fans never stop at 80 degrees [2].",
    "The pump stops at once if the oil is low [1]. The valve was opened before the test [1].",
    "The pump stops at 80 degrees [1][3]. The pump stops at once if the oil is low [3].",
    "",
]


def hits(make_hit: Callable[..., Hit]) -> Sequence[Hit]:
    """Two documents, and a passage that overlaps the first."""
    return [make_hit(PUMPS, "pumps"), make_hit(FANS, "fans"), make_hit(PUMPS[28:], "pumps", start=28)]


@pytest.mark.parametrize("reply", REPLIES)
async def test_a_receipt_of_what_was_answered_holds(
    embedder: Embedder, make_hit: Callable[..., Hit], reply: str
) -> None:
    llm = FakeLLM([reply]) if reply else None
    settings = AnswerSettings(citation_style="footnote", citation_format="[siehe {index}]")
    answerer = Answerer(embedder, llm, settings)
    answer = await answerer.answer("At which temperature does the pump stop?", hits(make_hit))
    assert answer.status == "answered"
    assert {one.support for one in answer.sentences} == ({"supported"} if reply else {"quoted"})
    made = make_receipt(answer, wording=Wording("footnote", "[siehe {index}]"), **FACTS)
    documents = {
        "pumps": LiveDocument(PUMPS, [live("pumps", PUMPS), live("pumps", PUMPS[28:], 28, 1)]),
        "fans": LiveDocument(FANS, [live("fans", FANS)]),
    }
    report = await checked(made, "[siehe {index}]", **documents)
    assert (report.tampering, report.differences) == ((), ())
    assert [one.reason for one in report.sentences] == [""] * len(answer.sentences)
    assert report.holds
