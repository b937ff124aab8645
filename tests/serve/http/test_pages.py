"""Pages for people: they load nothing from elsewhere."""

from __future__ import annotations

import re

import pytest
from tests.serve.http.conftest import Service

from ragstone.serve.http.pages import PARTS, POLICY

IMPORTS = re.compile(r'from "\./([^"]+)"')
LINKS = re.compile(r'(?:href|src)="([^"]+)"')


@pytest.mark.parametrize("path", ["/docs", "/ask"])
def test_a_page_loads_only_what_the_service_serves(shared: Service, path: str) -> None:
    page = shared.client.get(path)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert not re.search(r"https?:|\*|unsafe", policy)
    links = LINKS.findall(page.text)
    assert len(links) >= 3
    for link in links:
        part = shared.client.get(f"/{link}")
        assert part.status_code == 200
        assert not re.search(r"(?:https?:)?//[\w.-]+\.\w", part.text) or link == "openapi.json"


def test_only_the_files_of_the_pages_are_served(shared: Service) -> None:
    for name in PARTS:
        part = shared.client.get(f"/pages/{name}")
        assert part.status_code == 200
        assert part.headers["content-security-policy"] == POLICY
        for imported in IMPORTS.findall(part.text):
            assert imported in PARTS
    for name in ("__init__.py", "reference.html", "..%2f__init__.py", "none.js"):
        assert shared.client.get(f"/pages/{name}").status_code == 404


def test_an_upload_may_answer_with_200_and_names_its_fields(shared: Service) -> None:
    api = shared.client.get("/openapi.json").json()
    upload = api["paths"]["/v1/documents"]["post"]
    assert {"200", "202"} <= set(upload["responses"])
    form = upload["requestBody"]["content"]["multipart/form-data"]["schema"]["$ref"].rpartition("/")[2]
    fields = api["components"]["schemas"][form]["properties"]
    assert set(fields) == {"file", "title", "metadata", "external_id", "kb"}
    assert fields["file"].get("format") == "binary" or "contentMediaType" in fields["file"]
    assert all(field.get("description") for field in fields.values())


def test_the_start_says_where_to_go_on(shared: Service) -> None:
    told = shared.client.get("/").json()
    assert told["service"] == "ragstone"
    for name in ("ask", "docs", "openapi", "health"):
        assert shared.client.get(told[name]).status_code == 200


def test_no_page_of_the_framework_is_left(shared: Service) -> None:
    assert shared.client.get("/redoc").status_code == 404
    assert shared.client.get("/docs/oauth2-redirect").status_code == 404
