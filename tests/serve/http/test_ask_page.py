"""The page for people reads and sends only what the service has: a field that is renamed fails here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import get_args

import pytest
from pydantic import BaseModel
from tests.serve.http.conftest import Service

from ragstone.core.answers import AnswerStatus, ClaimOutcome, Outcome, Stance, Support
from ragstone.core.jobs import ACTIVE, Status
from ragstone.ingest.sources.database.records import ROW_ID
from ragstone.schemas import answers, documents, errors, jobs, knowledge_bases, search, tenants
from ragstone.serve.http import pages, requests
from ragstone.serve.http.problems import ProblemSchema

PROGRAMS = {
    name: (files(pages) / name).read_text(encoding="utf-8")
    for name in pages.PARTS
    if name.endswith(".js") and name != "reference.js"
}
SHAPES: dict[str, type[BaseModel]] = {
    "answer": answers.AnswerEventSchema,
    "sentence": answers.SentenceEventSchema,
    "citation": answers.CitationSchema,
    "contradiction": answers.ContradictionSchema,
    "checked": answers.CheckedTextSchema,
    "claim": answers.CheckedClaimSchema,
    "part": answers.ClaimPartSchema,
    "evidence": answers.EvidenceSchema,
    "found": search.SearchSchema,
    "hit": search.HitSchema,
    "result": search.WebResultSchema,
    "kb": knowledge_bases.KbSchema,
    "page": documents.ListedPageSchema,
    "listed": documents.ListedDocumentSchema,
    "status": documents.DocumentStatusSchema,
    "job": jobs.JobSchema,
    "apiKey": tenants.ApiKeySchema,
    "problem": ProblemSchema,
}
"""The names under which the programs hold what the service sends."""
PLACES = (answers.CitationSchema, answers.EvidenceSchema, answers.ContradictionSchema, search.HitSchema)
BODIES: dict[str, type[BaseModel]] = {
    "{ question, kb: session.kb, conversation }": requests.AskBody,
    "{ query, kb: session.kb }": requests.SearchBody,
    "{ text, kb: session.kb }": requests.VerifyTextBody,
}
WHOLE = "\n".join(PROGRAMS.values())


def read_fields(name: str) -> set[str]:
    """Return the fields that the programs read of what they hold under a name."""
    return set(re.findall(rf"(?<![\w$])(?<!\w\.){name}\??\.(\w+)", WHOLE))


@pytest.mark.parametrize("name", SHAPES)
def test_the_page_reads_only_fields_that_exist(name: str) -> None:
    fields = read_fields(name)
    assert fields
    assert fields <= set(SHAPES[name].model_fields)


def test_a_source_is_opened_at_a_place_that_every_proof_has() -> None:
    places = set.intersection(*({*shape.model_fields} for shape in PLACES))
    assert read_fields("place") - {"site"} <= places  # only what was found on the web has a site
    assert "site" in answers.CitationSchema.model_fields


def test_a_row_of_a_database_is_known_as_such() -> None:
    """It has no document: to open one ended with an error."""
    assert f'const ROW = "{ROW_ID}";' in PROGRAMS["source.js"]
    assert "if (place.document_id.startsWith(ROW)) return" in PROGRAMS["source.js"].partition("await readText(")[0]


def test_the_page_knows_the_events_of_an_answer() -> None:
    shapes = (answers.SentenceEventSchema, answers.CitationsEventSchema, answers.AnswerEventSchema)
    names = {shape.model_fields["event"].default for shape in shapes} | {*errors.ErrorSchema.model_fields}
    assert set(re.findall(r'\bname === "([a-z]+)"', PROGRAMS["answers.js"])) == names
    assert read_fields("told") == {*answers.CitationsEventSchema.model_fields, *errors.ErrorSchema.model_fields} - {
        "event"
    }
    assert set(re.findall(r"told\.error\.(\w+)", WHOLE)) <= set(errors.ErrorDetailSchema.model_fields)


@pytest.mark.parametrize("body", BODIES)
def test_a_body_has_only_fields_that_are_taken(body: str) -> None:
    assert body in WHOLE
    assert set(re.findall(r"(?<!\.)\b([a-z]+)\b(?!\.)", body)) <= set(BODIES[body].model_fields)


@pytest.mark.parametrize(
    ("program", "constant", "words"),
    [
        ("answers.js", "OUTCOMES", get_args(Outcome)),
        ("findings.js", "OUTCOMES", get_args(ClaimOutcome)),
        ("findings.js", "STANCES", get_args(Stance)),
        ("findings.js", "PARTS", get_args(Stance)),
        ("documents.js", "STATES", get_args(Status)),
    ],
)
def test_the_page_has_a_word_for_every_value(program: str, constant: str, words: Iterable[str]) -> None:
    found = re.search(rf"const {constant} = (.*);", PROGRAMS[program])
    assert found
    assert set(re.findall(r'(\w+): "', found[1])) == set(words)


def test_single_values_that_the_page_tells_apart_exist() -> None:
    assert {"without_sources"} == set(re.findall(r'answer\.status === "(\w+)"', WHOLE)) <= {*get_args(AnswerStatus)}
    assert str([*ACTIVE]).replace("'", '"') in PROGRAMS["documents.js"]
    assert {"unsupported"} == set(re.findall(r'sentence\.support === "(\w+)"', WHOLE)) <= {*get_args(Support)}


def test_every_route_that_the_page_asks_exists(shared: Service) -> None:
    paths = shared.client.get("/openapi.json").json()["paths"]
    calls = re.findall(r'call\("(\w+)", ["`]([^"`]+)', WHOLE) + [
        ("GET", one) for one in re.findall(r'read\(["`]([^"`]+)', WHOLE)
    ]
    calls += [("POST", one) for one in re.findall(r'fetchFor\("\w+", "([^"]+)', WHOLE)]
    asked = {
        (method.lower(), "/" + re.sub(r"\$\{.*?\)\}", "{document_id}", path).partition("?")[0])
        for method, path in calls
    }
    assert len(asked) == 10
    for method, path in asked:
        assert method in paths[path]
    listing = {parameter["name"] for parameter in paths["/v1/documents"]["get"]["parameters"]}
    assert {"status", "limit", "after", "kb"} <= listing


def test_a_key_that_is_limited_to_a_kb_may_read_all_that_the_page_reads(shared: Service) -> None:
    """A document that had failed left such keys with an error in place of the list."""
    document_id = shared.caller("page").upload("# Gate\n\nThe tide gate opens at nine.\n")
    limited = shared.caller("page", "read", kbs=("default",))
    read = re.findall(r'(?:read\(|call\("GET", )["`]([^"`?]+)', WHOLE)
    paths = {re.sub(r"\$\{.*?\)\}", document_id, path) for path in read}
    one = f"v1/documents/{document_id}"
    assert paths == {"v1/kbs", "v1/key", "v1/documents", one, f"{one}/text"}
    assert {path: limited("GET", f"/{path}").status_code for path in paths} == dict.fromkeys(paths, 200)


def test_files_go_where_the_page_was_when_they_were_chosen() -> None:
    """Another kb or key may be chosen while they are sent one after the other."""
    upload, send = (
        PROGRAMS["documents.js"].partition(f"async function {name}(")[2].partition("\n}")[0]
        for name in ("upload", "send")
    )
    assert "const { key, kb } = session;" in upload.partition("for (")[0]
    assert "if (session.key === key) await send(file, kb);" in upload
    assert "form.append(" in send
    assert "session" not in send


def test_a_question_comes_back_into_the_box_when_it_cannot_be_asked_now() -> None:
    """A key that is not valid any more empties the page, and one answer at a time is waited for."""
    refused, again = (
        PROGRAMS["ask.js"].partition(f'document.addEventListener("{event}"')[2].partition("});")[0]
        for event in ("keyneeded", "again")
    )
    assert "if (running) box.value ||= asked;" in refused
    assert "if (running) box.value = detail.text;" in again


def test_every_element_that_the_programs_look_for_is_on_the_page(shared: Service) -> None:
    page = shared.client.get("/ask").text
    ids = re.findall(r'id="([\w-]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'find\("([\w-]+)"\)', WHOLE)) <= set(ids)


def test_a_long_word_breaks_wherever_it_stands() -> None:
    """File names have no spaces: each of their places would have to be thought of."""
    style = (files(pages) / "ask.css").read_text(encoding="utf-8")
    assert [line for line in style.splitlines() if "overflow-wrap" in line] == [
        "main, #source { overflow-wrap: anywhere; }"
    ]


def test_text_of_documents_never_becomes_part_of_the_page() -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage", WHOLE
    )
