"""The shop over HTTP: kept, found, booked once, imported as a whole or not at all."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ragstone.core.clock import now

if TYPE_CHECKING:
    from tests.serve.http.conftest import Caller, Service

HOURS = [{"weekday": day, "opens": "09:00", "closes": "12:00"} for day in range(7)]
MASSAGE = {"id": "massage", "name": "Massage", "price": "80.50", "windows": HOURS, "timezone": "Europe/Berlin"}


def tomorrow() -> date:
    return (now() + timedelta(days=2)).date()


def days(first: date, last: date | None = None) -> dict[str, str]:
    return {"first": first.isoformat(), "last": (last or first).isoformat()}


@pytest.mark.req("R-DOM-38")
def test_a_product_is_added_changed_found_and_removed(acme: Caller) -> None:
    tea = {"name": "Green tea", "category": "Tea", "price": 4.5, "stock": 3}
    made = acme("POST", "/v1/shop/products", json=tea)
    assert made.status_code == 201
    place = made.headers["location"]
    shown = acme("GET", place)
    assert (shown.json()["price"], shown.json()["currency"], shown.json()["stock"]) == ("4.50", "USD", 3)
    assert acme("GET", place, headers={"If-None-Match": shown.headers["etag"]}).status_code == 304
    changed = acme("PUT", place, json=tea | {"price": "5.25", "stock": None})
    assert (changed.status_code, changed.json()["price"], changed.json()["stock"]) == (200, "5.25", None)
    assert acme("GET", place, headers={"If-None-Match": shown.headers["etag"]}).status_code == 200
    found = acme("GET", "/v1/shop/products", params={"q": "Do you have green teas?"}).json()
    assert [product["id"] for product in found["products"]] == [made.json()["id"]]
    assert acme("DELETE", place).json() == {"removed": made.json()["id"]}
    assert (acme("GET", place).status_code, acme("DELETE", place).status_code) == (404, 404)


def test_products_are_listed_page_by_page(acme: Caller) -> None:
    for name in "abc":
        acme("PUT", f"/v1/shop/products/{name}", json={"name": name})
    page = acme("GET", "/v1/shop/products", params={"limit": 2}).json()
    assert ([one["id"] for one in page["products"]], page["next"]) == (["a", "b"], "b")
    rest = acme("GET", "/v1/shop/products", params={"limit": 2, "after": page["next"]}).json()
    assert ([one["id"] for one in rest["products"]], rest["next"]) == (["c"], None)


@pytest.mark.req("R-CSA-08")
def test_slots_change_when_one_is_booked_and_again_when_it_is_cancelled(acme: Caller) -> None:
    acme("POST", "/v1/shop/services", json=MASSAGE)
    slots = acme("GET", "/v1/shop/services/massage/slots", params=days(tomorrow())).json()["slots"]
    assert [slot["local_start"][11:16] for slot in slots] == ["09:00", "10:00", "11:00"]
    wanted = {"service_id": "massage", "starts_at": slots[1]["starts_at"], "customer": "Ada"}
    made = acme("POST", "/v1/shop/appointments", json=wanted)
    assert (made.status_code, made.json()["status"], made.json()["starts_at"]) == (201, "booked", slots[1]["starts_at"])
    left = acme("GET", "/v1/shop/services/massage/slots", params=days(tomorrow())).json()["slots"]
    assert left == [slots[0], slots[2]]
    again = acme("POST", "/v1/shop/appointments", json=wanted | {"customer": "Bob"})
    assert (again.status_code, again.json()["code"]) == (409, "slot_taken")
    place = made.headers["location"]
    assert acme("POST", f"{place}/cancel").json()["status"] == "cancelled"
    assert acme("GET", "/v1/shop/services/massage/slots", params=days(tomorrow())).json()["slots"] == slots
    listed = acme("GET", "/v1/shop/appointments", params={"service_id": "massage"} | days(tomorrow())).json()
    assert [one["id"] for one in listed["appointments"]] == [made.json()["id"]]
    assert acme("GET", "/v1/shop/appointments", params=days(date(2020, 1, 1))).json() == {"appointments": []}


def test_a_repeated_request_books_once(acme: Caller) -> None:
    acme("POST", "/v1/shop/services", json=MASSAGE)
    wanted = {"service_id": "massage", "starts_at": f"{tomorrow()}T10:00", "customer": "Ada"}
    answers = [acme("POST", "/v1/shop/appointments", json=wanted, headers={"Idempotency-Key": "one"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert len(acme("GET", "/v1/shop/appointments").json()["appointments"]) == 1


@pytest.mark.parametrize(
    "starts_at",
    ["2020-01-06T09:00", "2030-06-03T09:10", "2030-06-03T12:00", "9999-12-31T23:59:59+14:00", "0001-01-01T00:00"],
)
def test_a_time_that_is_no_slot_cannot_be_booked(acme: Caller, starts_at: str) -> None:
    acme("POST", "/v1/shop/services", json=MASSAGE)
    wanted = {"service_id": "massage", "starts_at": starts_at, "customer": "Ada"}
    answer = acme("POST", "/v1/shop/appointments", json=wanted)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


def test_a_table_is_imported_whole_or_not_at_all(acme: Caller) -> None:
    def send(table: str, **fields: Any) -> Any:
        return acme("POST", "/v1/shop/import", files={"file": ("t.csv", table.encode())}, data=fields)

    assert send("name,price\nTea,4\nSoap,x\n").json()["detail"] == "row 3: the price 'x' is not a number"
    assert acme("GET", "/v1/shop/products").json()["products"] == []
    assert send("id,name,price\ntea,Tea,4\nsoap,Soap,2\n").json() == {"products": 2, "services": 0}
    assert send("name,minutes,windows\nWalk,30,mon 09:00-10:00\n").json() == {"products": 0, "services": 1}
    assert [one["id"] for one in acme("GET", "/v1/shop/products").json()["products"]] == ["soap", "tea"]
    refused = acme("POST", "/v1/shop/import", files={"file": ("t.csv", b"name\nTea\nCaf\xe9\n")})
    assert (refused.status_code, refused.json()["detail"]) == (422, "the table is not UTF-8 in line 3")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("products", {"name": ""}),
        ("products", {"name": "Tea", "price": -1}),
        ("products", {"name": "Tea", "price": "1e30"}),
        ("products", {"name": "Tea", "id": "../tea"}),
        ("products", {"name": "Te\0a"}),
        ("products", {"name": "Tea", "stock": 1.5}),
        ("products", {"name": "Tea", "colour": "green"}),
        ("services", {"name": "Walk", "timezone": "/etc/passwd"}),
        ("services", {"name": "Walk", "minutes": 1}),
        ("services", {"name": "Walk", "windows": [{"weekday": 0, "opens": "09:00:30", "closes": "10:00"}]}),
        ("services", {"name": "Walk", "windows": [HOURS[0], HOURS[0]]}),
    ],
)
def test_what_cannot_be_kept_is_refused(acme: Caller, path: str, body: dict[str, Any]) -> None:
    assert acme("POST", f"/v1/shop/{path}", json=body).status_code == 422


def test_customers_are_shown_to_those_who_may_write(service: Service) -> None:
    admin, reader = service.caller("acme"), service.caller("acme", "read")
    admin("POST", "/v1/shop/services", json=MASSAGE)
    wanted = {"service_id": "massage", "starts_at": f"{tomorrow()}T10:00", "customer": "Ada"}
    made = admin("POST", "/v1/shop/appointments", json=wanted)
    assert reader("GET", "/v1/shop/services/massage").status_code == 200
    assert reader("GET", "/v1/shop/appointments").status_code == 403
    assert reader("GET", made.headers["location"]).status_code == 403
    assert reader("POST", "/v1/shop/appointments", json=wanted).status_code == 403


def test_what_is_done_is_recorded(acme: Caller) -> None:
    acme("PUT", "/v1/shop/products/tea", json={"name": "Tea"})
    acme("DELETE", "/v1/shop/products/tea")
    acme("GET", "/v1/shop/products/tea")
    entries = acme("GET", "/v1/audit").json()["audit"]
    kept = [(one["action"], one["outcome"], one["target"]) for one in entries if one["action"].startswith("product")]
    assert kept == [
        ("product.read", "denied", "tea"),
        ("product.delete", "done", "tea"),
        ("product.put", "done", "tea"),
    ]
