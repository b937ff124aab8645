"""Writes docs/reference/http.md from the OpenAPI document of the service, and docs/reference/errors.md."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from ragstone import Settings, open_engine
from ragstone.core import errors
from ragstone.core.errors import RagstoneError
from ragstone.serve import http
from ragstone.serve.http import identity
from ragstone.serve.http.app import build_app
from ragstone.serve.http.oidc import IdentityUnavailable
from ragstone.serve.http.problems import CODES, STATUSES

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
HTTP_PAGE, ERRORS_PAGE = REFERENCE / "http.md", REFERENCE / "errors.md"
CHECKED_IN_ROUTE = {
    "GET /v1/alerts": "scope `admin`, of the whole tenant, or operator",
    "GET /metrics": "operator, or none on the same machine with `service.metrics: loopback`",
}
"""Keys that no dependency of a route shows."""
HTTP_OPENING = """\
# HTTP

Made from the OpenAPI document by `python -m scripts.http_reference`; a test keeps the list of routes up to date. A
running service has the whole document at `/openapi.json` and shows it at `/docs`. [The guide](../howto/service.md) has
examples.

Send a key as `Authorization: Bearer rgs_…`. The scope that it needs is beside each route. Bodies are JSON unless they
are marked as a form; a field that a route does not know is refused. [Errors](errors.md) are
`application/problem+json`. A `kb` that is not named is that of the settings.

Every `POST` under `/v1` takes the header `Idempotency-Key`, and every `GET` the header `If-None-Match`.
"""
ERRORS_OPENING = """\
# Errors

Made from the code by `python -m scripts.http_reference`; a test keeps it up to date.

An error has a message for people, a `code` for programs that stays the same, and a hint that says what to do.

- Over HTTP it is `application/problem+json` with the fields `type`, `title`, `status`, `detail`, `code`, `hint` and
  `request_id`, and with `errors` for fields that are wrong.
- In Python it is an exception of `ragstone.core.errors` with the attributes `code`, `hint`, `retryable` and
  `retry_after`; the [client](../howto/client.md) raises the same.
- `--json` prints `{"error": {"code", "message", "hint"}}`. [Remedies](remedies.md) lists the commands that hints name.
"""
ACTIONS: Mapping[str, str] = {
    "error": "Report it: no error should be without a kind.",
    "settings": "Correct the key, file or variable that the message names; `ragstone config` shows the result.",
    "invalid_input": "Correct the field or argument that the message names.",
    "invalid_filter": "Correct the filter; see [search](../concepts/search.md).",
    "COLLECTION_EXISTS": "Choose another name, or send `overwrite`.",
    "slot_taken": "Choose another free slot of the service.",
    "collection_busy": "Wait until the build under way has ended.",
    "not_found": "List what there is; an id of another tenant is as unknown as one that was never given.",
    "kb_gone": "List the knowledge bases, and try again under the present name.",
    "tenant_gone": "Ask the operator; a tenant that is being deleted cannot be used.",
    "quota_exceeded": "Wait for `Retry-After`; without it, delete something or have the quota raised.",
    "budget_spent": "Have the budget raised, or wait for the next month; searches without a paid model go on.",
    "overloaded": "Wait for `Retry-After`, and send fewer requests at once.",
    "tenant_suspended": "Have the operator resume the tenant.",
    "access_denied": "Use a key that may do this.",
    "parse_failed": "Open the file and save it again; the message says what is wrong with it.",
    "unsupported_format": "Convert the file; `limits.upload_types` and the extras decide what is read.",
    "empty_document": "Check that the file has text.",
    "no_text_seen": "Install OCR (the extra `ocr`) for scanned pages.",
    "parser_limit": "Split the file, or raise `limits`.",
    "model_failed": "Look at the log of the service or of the model's server.",
    "model_unavailable": "Install the model or its extra; the hint names it.",
    "model_mismatch": "Re-embed the knowledge base ([how](../howto/reembedding.md)), or set the former model.",
    "store_failed": "Run `ragstone doctor`; look at the store's own log.",
    "store_busy": "Try again; another process holds the store.",
    "store_full": "Make room on the disk. Nothing that was acknowledged is lost.",
    "store_read_only": "Make the data folder writable.",
    "point_refused": "Give the document fewer or shorter metadata fields, or choose another `store.vectors`.",
    "store_corrupt": "Run `ragstone doctor --repair`, or restore a [backup](../howto/backup.md).",
    "search_failed": "Try again; `ragstone doctor` shows which index does not answer.",
    "remote_failed": "Try again; look at the service that the message names.",
    "rate_limited": "Wait: a service that Ragstone calls wants fewer requests.",
    "fetch_failed": "Check the address; the message has its status.",
    "address_refused": "Give a public address, or allow the host with `fetch.allow`.",
    "source_failed": "Correct the settings of the source; `ragstone sources show` has the reason.",
    "lease_lost": "Nothing: another worker has the job.",
    "job_not_done": "Wait until the job has completed.",
    "unauthenticated": "Send a valid key: `Authorization: Bearer rgs_…`.",
    "forbidden": "Use a key with the scope that the message names.",
    "method_not_allowed": "Use a method that the route has.",
    "body_timeout": "Send the body without long pauses.",
    "too_large": "Send a smaller file, or raise `limits.file_mb`; a body without files has at most 4 MB.",
    "too_many_wrong_keys": "Wait for `Retry-After`; this address has sent many wrong keys.",
    "idempotency_key_reused": "Use a new `Idempotency-Key` for another request.",
    "reply_not_kept": "Look at the result: the request was done, and its reply was too large to keep.",
    "request_under_way": "Wait for `Retry-After`, and send the same request again.",
    "identity_unavailable": "Try again; the identity provider of `service.oidc` does not answer.",
    "unknown_host": "Call the service by a name that it knows, or add the name to `service.hosts`.",
    "invalid_request": "Correct the request.",
    "internal": "Look for the request id in the log of the service, and report it.",
}
"""By code; a test fails if one is missing."""


def list_routes() -> set[str]:
    """Return all routes, as the page names them."""
    _, document = asyncio.run(_describe())
    return {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}


def http_page() -> str:
    """Return the page of all routes."""
    return "\n".join(_http_lines(*asyncio.run(_describe())))


async def _describe() -> tuple[FastAPI, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_engine(Settings(data_dir=Path(folder))) as engine:
            app = build_app(engine, worker=False)
            return app, app.openapi()


def _http_lines(app: FastAPI, document: Mapping[str, Any]) -> Iterator[str]:
    yield HTTP_OPENING
    scopes = dict(_scopes(app))
    groups: dict[str, list[str]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            heading = f"{method.upper()} {path}"
            lines = _operation_lines(heading, scopes.get(heading, ""), operation, document)
            groups.setdefault(operation.get("tags", ["other"])[0], []).append("\n".join(lines))
    for group, sections in groups.items():
        yield f"## {group[0].upper()}{group[1:]}\n"
        yield from sections


def _operation_lines(
    heading: str, scope: str, operation: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[str]:
    yield f"### {heading}\n"
    yield f"{inspect.cleandoc(operation.get('description', ''))}\n"
    answers = ", ".join(_answers(operation))
    yield f"Key: {scope or 'none'}. Answer: {answers}.\n"
    for parameter in operation.get("parameters", ()):
        if parameter["in"] != "header":
            yield _field_line(parameter["name"], parameter["schema"], document, parameter["in"], parameter)
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        body = _resolve(content["schema"], document)
        needed = body.get("required", ())
        where = "body" if media_type == "application/json" else "form"
        for name, field in body.get("properties", {}).items():
            yield _field_line(name, field, document, where, {"required": name in needed})
    yield ""


def _answers(operation: Mapping[str, Any]) -> Iterator[str]:
    for status, response in operation["responses"].items():
        if status[0] not in "2":
            continue
        for media_type, content in response.get("content", {"": {}}).items():
            reference = content.get("schema", {}).get("$ref", "")
            shape = reference.rpartition("/")[2].removesuffix("Schema")
            yield f"{status} {shape or media_type}".strip()


def _field_line(
    name: str, schema: Mapping[str, Any], document: Mapping[str, Any], where: str, facts: Mapping[str, Any]
) -> str:
    about = facts.get("description") or schema.get("description", "")
    default = schema.get("default")
    told = f" = {default!r}" if default not in (None, "", [], {}) else ""
    needed = ", required" if facts.get("required") else ""
    return f"- `{name}: {_type(schema, document)}{told}` ({where}{needed})" + (f": {about}" if about else "")


def _type(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2].removesuffix("Schema"))
    if "anyOf" in schema:
        kinds = [_type(kind, document) for kind in schema["anyOf"]]
        return " | ".join(kind for kind in kinds if kind != "null")
    if "enum" in schema:
        return " | ".join(repr(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list[{_type(schema.get('items', {}), document)}]"
    if schema.get("contentMediaType") or schema.get("format") == "binary":
        return "file"
    return str(schema.get("type", "any"))


def _resolve(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Mapping[str, Any] = document["components"]["schemas"][name] if name else schema
    return found


def _scopes(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield each route with the scope that its key needs."""
    for route in app.routes:
        if isinstance(route, APIRoute):
            for method in route.methods or ():
                place = f"{method} {route.path_format}"
                yield place, CHECKED_IN_ROUTE.get(place) or ", ".join(dict.fromkeys(_needs(route.dependant)))


def _needs(dependant: Any) -> Iterator[str]:
    for inner in dependant.dependencies:
        call = inner.call
        if call is identity.require_operator:
            yield "operator"
        elif call is identity.require_whole_tenant:
            yield "scope `admin`, of the whole tenant"
        elif getattr(call, "__qualname__", "").startswith(identity.require.__name__ + "."):
            yield f"scope `{inspect.getclosurevars(call).nonlocals['scope']}`"
        else:
            yield from _needs(inner)


def errors_page() -> str:
    """Return the page of all errors."""
    return "\n".join(_error_lines())


def _error_lines() -> Iterator[str]:
    yield ERRORS_OPENING
    yield "## Errors of the engine\n"
    yield "| Code | Status | In Python | Meaning | What to do |"
    yield "|---|---|---|---|---|"
    meanings = dict(re.findall(r"^[│├└─ ]*(\w+) +(.+)$", errors.__doc__ or "", re.MULTILINE))
    for kind in dict.fromkeys(list_kinds(RagstoneError)):  # some have two parents
        status = next((STATUSES[parent] for parent in kind.__mro__ if parent in STATUSES), 500)
        meaning = meanings.get(kind.__name__, "anything else")
        yield f"| `{kind.code}` | {status} | `{kind.__name__}` | {meaning} | {ACTIONS[kind.code]} |"
    yield ""
    yield "## Errors of the service alone\n"
    yield "The client raises `AccessDenied` for 401 and 403, `RemoteError` for 429 and 5xx, `InputError` for others.\n"
    yield "| Code | Status | What to do |"
    yield "|---|---|---|"
    known = {kind.code for kind in list_kinds(RagstoneError)}
    for code, answered in service_codes().items():
        if code not in known:
            yield f"| `{code}` | {answered} | {ACTIONS[code]} |"
    yield ""


def list_kinds(kind: type[RagstoneError]) -> Iterator[type[RagstoneError]]:
    """Yield a kind of error and all narrower ones of the module, in the order of its tree."""
    yield kind
    for narrower in kind.__subclasses__():
        # One that is of two kinds is listed with the first.
        if narrower.__module__ == errors.__name__ and narrower.__bases__[0] is kind:
            yield from list_kinds(narrower)


def service_codes() -> dict[str, str]:
    """Return the codes that only the service has, with their statuses, as the code of its routes says."""
    found = {code: str(status) for status, code in CODES.items()} | {"invalid_request": "4xx", "internal": "5xx"}
    found[IdentityUnavailable.code] = "503"
    for path in sorted(Path(str(http.__file__)).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("make_problem", "_refuse")):
                values = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                statuses = [value for value in values if isinstance(value, int) and 400 <= value < 600]
                codes = [
                    value for value in values if isinstance(value, str) and re.fullmatch(r"[a-z]+(_[a-z]+)+", value)
                ]
                if statuses and codes:
                    found.setdefault(codes[0], str(statuses[0]))
    return found


def main() -> int:
    """Write both pages."""
    HTTP_PAGE.write_text(http_page(), encoding="utf-8")
    ERRORS_PAGE.write_text(errors_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
