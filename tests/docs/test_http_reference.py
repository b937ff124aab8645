"""The pages of routes and errors name what the service has."""

from __future__ import annotations

import re

from scripts.http_reference import ERRORS_PAGE, HTTP_PAGE, errors_page, list_routes

RUN = "run: python -m scripts.http_reference"


def test_the_reference_has_every_route() -> None:
    named = set(re.findall(r"^### ([A-Z]+ /.*)$", HTTP_PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert named == list_routes(), RUN


def test_the_reference_says_which_key_a_route_needs() -> None:
    page = HTTP_PAGE.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### ([A-Z]+ /.*)\n(?:.*\n)*?Key: (.*)\. Answer", page, re.MULTILINE))
    assert sections["POST /v1/search"] == "scope `read`"
    assert sections["POST /v1/documents"] == "scope `write`"
    assert sections["GET /v1/keys"] == "scope `admin`, of the whole tenant"
    assert sections["GET /v1/tenants"] == "operator"
    assert sections["GET /healthz"] == "none"


def test_the_reference_has_every_error() -> None:
    """A code without an action in `scripts/http_reference.py` fails here."""
    assert ERRORS_PAGE.read_text(encoding="utf-8") == errors_page(), RUN
