"""`ragstone shop` for people: tables, hints, and the rows of a table that are wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragstone.samples import shop
from ragstone.serve.cli.main import main

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


@pytest.fixture(scope="module")
def shop_stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the demo shop in it, made once."""
    folder = tmp_path_factory.mktemp("shop") / "data"
    for name in ("products.csv", "services.csv"):
        assert main(["shop", "import", str(shop.FOLDER / name), "--data-dir", str(folder)]) == 0
    return folder


@pytest.fixture
def stocked(cli: Cli, shop_stock: Path, tmp_path: Path) -> Cli:
    """The command line after the demo shop was imported."""
    shutil.copytree(shop_stock, tmp_path / "ragstone-data")
    return cli


def test_a_shop_is_imported_and_searched(stocked: Cli) -> None:
    listed = stocked("shop", "products").out
    assert stocked("shop").out == listed
    assert "oriental-spice" in listed
    assert "42.00 USD" in listed
    found = stocked("shop", "products", "Tell me about the Oriental Spice perfume", "--json").json["products"]
    assert [product["id"] for product in found] == ["oriental-spice"]
    assert "on request" in stocked("shop", "product", "glass-lamp").out
    assert "mon 10:00-13:00" in stocked("shop", "service", "relaxing-massage").out
    assert stocked("shop", "products", "zeppelin").code == 4


@pytest.mark.parametrize(("what", "size"), [("products", 17), ("services", 6)])
def test_a_list_that_goes_on_says_how(stocked: Cli, what: str, size: int) -> None:
    whole = stocked("shop", what, "--limit", str(size))
    assert (whole.err, len(whole.out.splitlines())) == ("", size + 1)
    assert stocked("shop", what, "--limit", str(size), "--json").json["next"] is None
    ids = [line.split()[0] for line in whole.out.splitlines()[1:]]
    begun = stocked("shop", what, "--limit", "2")
    assert begun.err == f"more: ragstone shop {what} --after {ids[1]} --limit 2\n"
    assert [line.split()[0] for line in begun.out.splitlines()[1:]] == ids[:2]


@pytest.mark.req("R-CSA-08")
def test_the_slots_of_a_massage_change_when_one_is_booked(stocked: Cli) -> None:
    days = ("--from", "2031-06-02", "--to", "2031-06-02")
    before = stocked("shop", "slots", "relaxing-massage", *days).out.splitlines()
    assert before[0] == "Mon 2031-06-02 10:00–11:00 EDT"
    booked = stocked("shop", "book", "relaxing-massage", "2031-06-02T10:00", "--customer", "Ada")
    assert booked.code == 0
    assert stocked("shop", "slots", "relaxing-massage", *days).out.splitlines() == before[1:]
    again = stocked("shop", "book", "relaxing-massage", "2031-06-02T10:00", "--customer", "Bob")
    assert (again.code, again.err.splitlines()[0]) == (2, "error: 2031-06-02 10:00 is booked already")
    assert "Ada" in stocked("shop", "appointments").out


def test_wrong_rows_are_named_and_nothing_is_imported(cli: Cli) -> None:
    Path("table.csv").write_text("id,name,price\ntea,Tea,4\nsoap,Soap,two\n,,1\n")
    ran = cli("shop", "import", "table.csv")
    assert ran.code == 2
    assert ran.err.startswith("error: row 3: the price 'two' is not a number; row 4: the name is empty\n")
    assert cli("shop", "products").code == 4
    assert cli("shop", "import", "none.csv").code == 1


@pytest.mark.parametrize(
    "call",
    [
        ("product", "$"),
        ("service", "$"),
        ("slots", "$"),
        ("book", "$", "2031-06-02T10:00", "--customer", "Eve"),
        ("cancel", "$"),
        ("remove", "product", "$"),
        ("remove", "service", "$"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_id_of_another_tenant_is_as_unknown_as_any(
    stocked: Cli, call: tuple[str, ...], form: tuple[str, ...]
) -> None:
    stocked("tenants", "create", "globex")
    made = stocked("shop", "book", "relaxing-massage", "2031-06-02T10:00", "--customer", "Ada", "--json").json["id"]
    foreign = made if call[0] == "cancel" else "oriental-spice" if "product" in call else "relaxing-massage"
    answers = []
    for identity in (foreign, "f" * len(foreign)):
        words = [word.replace("$", identity) for word in call]
        ran = stocked("shop", *words, "--tenant", "globex", *form)
        answers.append((ran.code, (ran.out + ran.err).replace(identity, "ID")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 4
    assert stocked("shop", "product", "oriental-spice").code == 0
    assert "booked" in stocked("shop", "appointments").out


@pytest.mark.parametrize(
    "call",
    [
        ("put-product", "Tea", "--price", "four"),
        ("put-service", "Walk", "--hours", "always"),
        ("slots", "relaxing-massage", "--from", "2031-06-02"),
        ("slots", "relaxing-massage", "--from", "today", "--to", "tomorrow"),
        ("book", "relaxing-massage", "noon", "--customer", "Ada"),
    ],
)
def test_what_cannot_be_read_is_refused(stocked: Cli, call: tuple[str, ...]) -> None:
    ran = stocked("shop", *call)
    assert (ran.code, ran.err.startswith("error: ")) == (2, True)
