from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest

from ragstone.answer.verify import ClaimVerifier, reading
from ragstone.answer.verify.checks import check
from ragstone.answer.verify.objections import Findings
from ragstone.core.answers import Verdict
from ragstone.core.errors import InputError, ModelError, RagstoneError
from ragstone.core.model_types import Entailment
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.schemas.answers import VerdictSchema
from ragstone.testing.fakes import FakeEmbedder

FARE = "A single crossing costs 6 crowns."
CLOSED = "The east slip is closed to launching."


def hit(text: str, document: str = "d1", **changes: object) -> Hit:
    facts = {"title": "", "uri": f"{document}.md", "score": 0.8, "metadata": {}} | changes
    return Hit(
        chunk_id=f"{document}-0",
        document_id=document,
        section="",
        page=None,
        text=text,
        scores={},
        start=10,
        end=10 + len(text),
        **facts,  # type: ignore[arg-type]
    )


def found(*hits: Hit) -> Callable[[str], Awaitable[SearchResult]]:
    async def search(query: str) -> SearchResult:
        return SearchResult(query, query, "balanced", hits, (), (), 0.0)

    return search


class Saying:
    """An entailer that says one thing of every premise."""

    name = "saying"

    def __init__(self, said: Entailment | RagstoneError) -> None:
        self.said = said
        self.premises: list[str] = []

    async def label(self, premises: Sequence[str], hypothesis: str) -> Sequence[Entailment]:
        self.premises += premises
        if isinstance(self.said, RagstoneError):
            raise self.said
        return [self.said] * len(premises)

    async def close(self) -> None: ...


async def verified(claim: str, *hits: Hit, entailer: Saying | None = None) -> Verdict:
    return await ClaimVerifier(FakeEmbedder(), lambda: entailer).verify(claim, found(*hits))


@pytest.mark.req("R-TOL-03")
async def test_what_a_source_says_word_for_word_is_verified() -> None:
    verdict = await verified(
        FARE, hit(f"Welcome aboard. {FARE}", metadata={"source": "fares"}), hit("Dogs sleep.", "d2")
    )
    assert (verdict.status, verdict.confidence, verdict.stance) == ("VERIFIED", "high", "supported")
    assert (verdict.sources, verdict.checker) == (1, "checks")
    first = verdict.evidence[0]
    assert (first.text, first.source, first.stance, first.relevance) == (FARE, "fares", "supported", 0.8)
    assert (first.start, first.end) == (26, 26 + len(FARE))


@pytest.mark.parametrize("claim", ["A single crossing costs 7 crowns.", "A single crossing does not cost 6 crowns."])
async def test_what_a_source_says_otherwise_is_never_verified(claim: str) -> None:
    verdict = await verified(claim, hit(FARE))
    assert (verdict.status, verdict.confidence, verdict.stance) == ("UNVERIFIED", "low", "refuted")


@pytest.mark.parametrize(
    ("source", "claim", "status", "stance"),
    [
        ("The crane lifts 1.5 tonnes.", "The crane lifts 1500 kg.", "VERIFIED", "supported"),
        ("The crane lifts 1.5 tonnes.", "The crane lifts 1900 kg.", "UNVERIFIED", "refuted"),
        ("The council meets on Monday.", "The council meets on Tuesday.", "UNVERIFIED", "refuted"),
        ("The fair is held in June.", "The fair is held in July.", "UNVERIFIED", "refuted"),
        ("The museum opens at 9:00.", "The museum opens at 9 am.", "VERIFIED", "supported"),
        ("The museum opens at 9:00.", "The museum opens at 17:00.", "UNVERIFIED", "refuted"),
        ("If the disk is full, ingest stops.", "Ingest stops.", "UNVERIFIED", "unknown"),
    ],
)
async def test_figures_are_compared_by_what_they_tell(source: str, claim: str, status: str, stance: str) -> None:
    verdict = await verified(claim, hit(source))
    assert (verdict.status, verdict.stance) == (status, stance)


@pytest.mark.parametrize(
    ("claim", "supports"),
    [
        ("The pump sleeps 6 minutes between tries by default.", False),
        ("The pump sleeps 6 seconds between tries by default.", True),
    ],
)
async def test_a_unit_that_the_source_lacks_is_not_supported(claim: str, supports: bool) -> None:
    text = "How many seconds to sleep between tries. By default the pump sleeps 6 between tries."
    assert ((await verified(claim, hit(text))).stance == "supported") is supports


async def test_sources_that_disagree_establish_nothing() -> None:
    verdict = await verified(FARE, hit(FARE), hit(FARE.replace("6", "9"), "d2"))
    assert (verdict.status, verdict.stance) == ("UNVERIFIED", "mixed")
    assert {item.stance for item in verdict.evidence} == {"supported", "refuted"}


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("A double crossing costs 7 crowns.", FARE),
        (
            "Pushing into a boat is not supported.",
            'There is no "write" support, and a push into a boat is not supported.',
        ),
        ("Rows are skipped before the boats are counted.", "Rows are skipped before starting to count the boats."),
        (
            "Dividing one fare by another gives a rate.",
            "When a fare is divided by another, it gives a rate (not a fare).",
        ),
    ],
)
async def test_a_sentence_about_another_or_with_the_same_denial_refutes_nothing(claim: str, sentence: str) -> None:
    verdict = await verified(claim, hit(sentence))
    assert verdict.stance != "refuted"
    assert all(item.stance != "refuted" for item in verdict.evidence)


async def test_another_number_said_of_something_else_refutes_nothing() -> None:
    claim = "The crossing to Sula takes 55 minutes."
    verdict = await verified(claim, hit(claim), hit("The crossing takes 85 minutes.", "d2", title="Hennay"))
    assert (verdict.status, verdict.stance) == ("VERIFIED", "supported")


async def test_a_compound_claim_is_as_good_as_its_weakest_part() -> None:
    verdict = await verified(f"{FARE[:-1]} but the east slip is open to launching.", hit(FARE), hit(CLOSED, "d2"))
    assert [(part.status, part.stance) for part in verdict.parts] == [
        ("VERIFIED", "supported"),
        ("UNVERIFIED", "refuted"),
    ]
    assert (verdict.status, verdict.stance, verdict.sources) == ("UNVERIFIED", "refuted", 0)


async def test_a_compound_claim_that_a_sentence_says_word_for_word_is_verified_as_a_whole() -> None:
    claim = "The guard time defaults to 2 s, but this can be changed using the minimum option."
    verdict = await verified(claim, hit(f"Mind the guard. {claim}"))
    assert (verdict.status, [part.text for part in verdict.parts]) == ("VERIFIED", [claim])


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The output of the pump may be a context diff.", "For the pump, a context diff as output will NOT work."),
        ("The tests may change the source tree.", "The tests are *not* allowed to make any change to the source tree."),
        ("The pump keeps the log.", "The pump no longer keeps the log."),
        ("The pump does not keep the log.", "The pump keeps the log."),
        ("The valve is enabled by default.", "The valve is off by default."),
    ],
)
async def test_a_denial_on_one_side_only_never_supports(claim: str, sentence: str) -> None:
    verdict = await verified(claim, hit(sentence))
    assert (verdict.status, verdict.stance == "supported") == ("UNVERIFIED", False)
    assert all(item.stance != "supported" for item in verdict.evidence)


@pytest.mark.req("R-TOL-05")
async def test_nothing_found_is_a_verdict() -> None:
    verdict = await verified(FARE)
    assert VerdictSchema.of(verdict).as_json() == {
        "claim": FARE,
        "status": "UNVERIFIED",
        "confidence": "low",
        "stance": "unknown",
        "evidence": [],
        "support": 0.0,
        "sources": 0,
        "parts": [{"text": FARE, "status": "UNVERIFIED", "stance": "unknown", "support": 0.0}],
        "checker": "checks",
        "degraded": [],
    }


async def test_a_name_that_stands_over_a_sentence_is_what_it_is_about() -> None:
    claim = "The money type of Borealis stores an amount with a fixed precision."
    sentence = "The money type stores an amount with a fixed precision; see Table 8."
    assert (await verified(claim, hit(sentence, title="Borealis: types"))).stance == "supported"
    assert (await verified(claim, hit(sentence, title="Acme: types"))).stance != "supported"


async def test_copies_of_a_text_are_one_source() -> None:
    other = "Passengers pay on board: a single crossing costs 6 crowns, bicycles included, all year round."
    verdict = await verified(FARE, hit(FARE), hit(FARE, "d2"), hit(other, "d3"))
    assert verdict.stance == "supported"
    assert verdict.sources == 2


async def test_at_most_three_pieces_of_evidence() -> None:
    verdict = await verified(FARE, *(hit(f"{FARE} Ship {n}.", f"d{n}") for n in range(8)))
    assert len(verdict.evidence) == 3


@pytest.mark.req("R-TOL-04")
@pytest.mark.parametrize(
    ("score", "status", "confidence"),
    [
        (0.91, "VERIFIED", "high"),
        (0.9, "LIKELY", "medium"),
        (0.71, "LIKELY", "medium"),
        (0.7, "UNVERIFIED", "low"),
        (0.2, "UNVERIFIED", "low"),
    ],
)
async def test_support_is_cut_at_nine_and_seven_tenths(score: float, status: str, confidence: str) -> None:
    verdict = await verified(FARE, hit(FARE), entailer=Saying(Entailment("entails", score)))
    assert (verdict.status, verdict.confidence, verdict.checker) == (status, confidence, "saying")


async def test_a_refuted_claim_has_what_the_sentence_says_instead_as_its_only_reason() -> None:
    text = "When rsync is run as a daemon, the default port is usually 873."
    search = found(hit(text, title="rsync"))
    verdict = await ClaimVerifier(FakeEmbedder()).verify("The default port of the rsync daemon is 22.", search)
    assert (verdict.stance, verdict.evidence[0].failed) == ("refuted", ("it says “873”, not “22”",))


async def test_a_failed_check_keeps_an_entailed_claim_from_being_verified() -> None:
    entailer = Saying(Entailment("entails", 1.0))
    verdict = await verified("A single crossing costs 7 crowns.", hit(FARE), entailer=entailer)
    assert (verdict.status, verdict.evidence[0].failed) == ("LIKELY", ("it says another number",))


async def test_a_contradiction_refutes() -> None:
    verdict = await verified(FARE, hit(FARE), entailer=Saying(Entailment("contradicts", 0.95)))
    assert (verdict.status, verdict.stance, verdict.support) == ("UNVERIFIED", "refuted", 0.0)


async def test_the_checker_reads_the_title_and_the_sentence_before() -> None:
    entailer = Saying(Entailment("neutral", 0.9))
    await verified(
        "It costs 6 crowns a day.", hit("Take the boat. It costs 6 crowns.", title="Fares"), entailer=entailer
    )
    assert entailer.premises[0] == "Fares\nTake the boat.\nIt costs 6 crowns."


async def test_without_its_checker_the_explicit_checks_judge() -> None:
    verdict = await verified(FARE, hit(FARE), entailer=Saying(ModelError("no weights")))
    assert (verdict.status, verdict.checker) == ("VERIFIED", "checks")
    assert verdict.degraded == ("entailment: no weights",)


async def test_without_an_embedder_words_decide() -> None:
    verifier = ClaimVerifier(FakeEmbedder(errors=[ModelError("no weights")]))
    verdict = await verifier.verify(FARE, found(hit(FARE)))
    assert (verdict.status, verdict.degraded) == ("VERIFIED", ("verify: sentences compared by words only: no weights",))


async def test_a_claim_that_is_too_long_is_refused_rather_than_cut() -> None:
    with pytest.raises(InputError, match="2001 characters"):
        await verified("x" * 2001)


@pytest.mark.parametrize("claim", ["\x00", "\ud800 is open", "?", "1"])
async def test_odd_claims_get_a_verdict(claim: str) -> None:
    assert (await verified(claim, hit(FARE))).status == "UNVERIFIED"


MADE_TO_HURT = {
    "dates": ("1 May 2020, 2 May 2021, ", "2020-01-01, 5 May, "),
    "figures": ("1 kg and 2 m, ", "a 1 m, b 2 m, c 3 m, "),
    "joints": ("he and she is and ", "if when unless because "),
}


@pytest.mark.parametrize("kind", MADE_TO_HURT)
async def test_a_claim_made_to_hurt_costs_a_limited_number_of_steps_off_the_loop(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it all took 18 seconds on the event loop, which every other search waited for."""
    asked, said = MADE_TO_HURT[kind]
    threads: set[int] = set()
    steps = 0

    def count(claim: str, sentence: str, *rest: str) -> Findings:
        nonlocal steps
        steps += len(re.findall(r"\w+", claim)) * len(re.findall(r"\w+", sentence))
        threads.add(threading.get_ident())
        return check(claim, sentence, *rest)

    monkeypatch.setattr(reading, "check", count)
    hits = [hit(f"{number} {said * 20}", f"d{number}") for number in range(16)]
    verdict = await verified((asked * 100)[:2000], *hits)
    assert threading.get_ident() not in threads
    assert 0 < steps <= reading.MOST_STEPS
    assert [note for note in verdict.degraded if "sentences were not read" in note] != []


async def test_an_ordinary_claim_is_read_to_the_end() -> None:
    claim = f"{FARE[:-1]}, dogs travel free on every boat of the line, and children under six pay nothing at all."
    hits = [hit(f"{FARE} Dogs travel free. Children under six pay nothing. Line {n}.", f"d{n}") for n in range(16)]
    assert (await verified(claim, *hits)).degraded == ()
