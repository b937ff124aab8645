"""A stand-in for Weaviate on loopback: its REST interface v1 and its GraphQL, strict about what it is sent.

    with WeaviateDouble() as weaviate:
        provider = WeaviateProvider(
            Adapter(kind="weaviate", url=weaviate.url, api_key=weaviate.api_key), folder, "namespace"
        )

Vectors are compared exactly, and what was written is found at once, as the real one promises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tests.doubles.rest import Refused, RestDouble, check_fields
from tests.doubles.weaviate_class import ClassDouble, Stored
from tests.doubles.weaviate_graphql import Query, parse_query
from tests.doubles.web import Reply, Request, json_reply

from ragstone.core.types import Json

MOST = 10_000
"""QUERY_MAXIMUM_RESULTS: what one query finds or one call removes at most."""
TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}")


class WeaviateDouble:
    """Serves in a thread while it is entered."""

    def __init__(self, *, api_key: str = "weaviate-key", version: str = "1.40.3") -> None:
        self.api_key = api_key
        self.version = version
        self.most = MOST
        self.classes: dict[str, ClassDouble] = {}
        self.http = RestDouble(self._answer)

    def __enter__(self) -> WeaviateDouble:
        self.http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.__exit__()

    @property
    def url(self) -> str:
        """The address to configure."""
        return f"http://{self.http.host}"

    def _answer(self, request: Request) -> Reply:
        try:
            return self._route(request)
        except Refused as refusal:
            if refusal.status == 200:  # GraphQL reports its errors so
                return json_reply({"data": None, "errors": [{"message": str(refusal)}]})
            return json_reply({"error": [{"message": str(refusal)}]}, refusal.status)

    def _route(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {self.api_key}":
            raise Refused(401, f"unauthorized: invalid api key {request.headers.get('authorization')}")
        if request.body and request.headers.get("content-type") != "application/json":
            raise Refused(415, "unsupported media type")
        body = _body(request)
        match request.method, request.path.removeprefix("/v1/").split("/"):
            case "GET", ["meta"]:
                return json_reply({"hostname": self.url, "version": self.version, "modules": {}})
            case "POST", ["graphql"]:
                return self._graphql(body)
            case "POST", ["batch", "objects"]:
                _check_level(request.query)
                return json_reply([self._put(given) for given in body["objects"]])
            case "DELETE", ["batch", "objects"]:
                _check_level(request.query)
                return self._remove(body, request.query.get("tenant", ""))
            case _, ["schema", *rest]:
                return self._schema(request.method, rest, body)
        raise Refused(404, "no such route")

    def _schema(self, method: str, path: list[str], body: Json) -> Reply:
        match method, path:
            case "POST", []:
                made = ClassDouble(body)
                if made.name.lower() in {name.lower() for name in self.classes}:
                    raise Refused(422, f"class name {made.name} already exists")
                self.classes[made.name] = made
                return json_reply(made.definition)
            case "GET", [name]:
                return json_reply(self._class(name).definition)
            case "DELETE", [name]:
                self.classes.pop(name, None)
                return Reply()
            case "POST", [name, "tenants"]:
                return self._add_tenants(self._class(name), body)
            case "HEAD", [name, "tenants", tenant]:
                return Reply(status=200 if tenant in self._class(name).objects else 404)
        raise Refused(405, "method not allowed")

    def _class(self, name: str) -> ClassDouble:
        if name not in self.classes:
            raise Refused(404, f"class {name} not found")
        return self.classes[name]

    def _add_tenants(self, wanted: ClassDouble, body: Json) -> Reply:
        if not wanted.many_tenants:
            raise Refused(422, f"multi-tenancy is not enabled for class {wanted.name}")
        for one in body:
            check_fields(one, {"name"})
            if not TENANT.fullmatch(one["name"]):
                raise Refused(422, f"invalid tenant name {one['name']}")
            wanted.objects.setdefault(one["name"], {})
        return json_reply(body)

    def _put(self, given: Json) -> Json:
        try:
            self._class(given["class"]).put(given)
        except Refused as refusal:
            errors = {"error": [{"message": str(refusal)}]}
            return given | {"result": {"status": "FAILED", "errors": errors}}
        return given | {"result": {"status": "SUCCESS"}}

    def _remove(self, body: Json, tenant: str) -> Reply:
        check_fields(body, {"match"}, {"output", "dryRun"})
        check_fields(body["match"], {"class", "where"})
        wanted = self._class(body["match"]["class"])
        objects = wanted.of(tenant)
        test = wanted.passing(body["match"]["where"], graphql=False)
        matched = [one.id for one in objects.values() if test(one)][: self.most]
        for one in matched:
            del objects[one]
        results = {"matches": len(matched), "successful": len(matched), "failed": 0, "limit": self.most}
        return json_reply(body | {"results": results | {"objects": None}})

    def _graphql(self, body: Json) -> Reply:
        check_fields(body, {"query"}, {"variables", "operationName"})
        if not self.classes:
            raise Refused(422, "no graphql provider present, this is most likely because no schema is present")
        query = parse_query(body["query"])
        if query.name not in self.classes:
            raise Refused(200, f'Cannot query field "{query.name}" on type "{query.root}ObjectsObj".')
        try:
            rows = self._rows(self.classes[query.name], query)
        except Refused as refusal:
            raise Refused(200, str(refusal)) from None
        return json_reply({"data": {query.root: {query.name: rows}}})

    def _rows(self, wanted: ClassDouble, query: Query) -> list[Json]:
        given = query.arguments
        allowed = {"where", "tenant"} | ({"limit", "nearVector"} if query.root == "Get" else set())
        check_fields(given, set(), allowed)
        objects = list(wanted.of(given.get("tenant", "")).values())
        if "where" in given:
            test = wanted.passing(given["where"], graphql=True)
            objects = [one for one in objects if test(one)]
        if query.root == "Aggregate":
            check_fields(query.fields, {"meta"})
            return [{"meta": {"count": len(objects)}}]
        limit = given.get("limit", 100)
        if not 0 < limit <= self.most:
            raise Refused(200, "query maximum results exceeded")
        if "nearVector" not in given:
            return [_row(wanted, one, query.fields, None) for one in objects[:limit]]
        check_fields(given["nearVector"], {"vector"})
        nearest = wanted.nearest(objects, given["nearVector"]["vector"])[:limit]
        return [_row(wanted, one, query.fields, distance) for one, distance in nearest]


def _row(wanted: ClassDouble, one: Stored, fields: Mapping[str, Json], distance: float | None) -> Json:
    check_fields(fields, set(), wanted.properties.keys() | {"_additional"})
    row = {name: one.properties.get(name) for name in fields if name != "_additional"}
    if "_additional" in fields:
        known = {"id": one.id, "vector": one.vector.tolist(), "distance": distance}
        check_fields(fields["_additional"], set(), known.keys())
        row["_additional"] = {name: known[name] for name in fields["_additional"]}
    return row


def _check_level(query: Mapping[str, str]) -> None:
    check_fields(query, {"consistency_level"}, {"tenant"})
    if query["consistency_level"] not in ("ALL", "QUORUM", "ONE"):
        raise Refused(422, "unknown consistency level")


def _body(request: Request) -> Json:
    try:
        return json.loads(request.body) if request.body else None
    except ValueError:
        raise Refused(400, "malformed JSON") from None
