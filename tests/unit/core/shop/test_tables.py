"""Products and services as CSV: right rows are read, and wrong ones are named."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ragstone.core.errors import InputError
from ragstone.core.shop import Product
from ragstone.core.shop.tables import MOST_ROWS, kind_of, read_products, read_services
from ragstone.core.shop.windows import format_windows

HEADER = "id,name,category,brand,description,price,currency,stock"


def test_products_are_read() -> None:
    first, second = read_products(f'{HEADER}\ntea,Green Tea,Tea,,"Fresh, ""sweet""",4.5,eur,12\n\n,Soap,,,,,,\n')
    assert (first.id, first.description, first.price) == ("tea", 'Fresh, "sweet"', Decimal("4.50"))
    assert (first.currency, first.stock) == ("EUR", 12)
    assert (second.name, second.price, second.currency, second.stock) == ("Soap", None, "USD", None)
    assert second.id


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_may_come_from_any_spreadsheet(delimiter: str) -> None:
    text = "\ufeff" + "Name,Price\r\nTea,4\r\n".replace(",", delimiter)
    assert [(product.name, product.price) for product in read_products(text)] == [("Tea", Decimal("4.00"))]


def test_services_are_read_and_told_from_products() -> None:
    text = 'name,minutes,windows,timezone\nMassage,90,"mon 09:00-12:00, 13:00-17:00",Europe/Berlin\n'
    assert (kind_of(text), kind_of(HEADER)) == ("services", "products")
    (service,) = read_services(text)
    assert (service.minutes, service.timezone) == (90, "Europe/Berlin")
    assert format_windows(service.windows) == "mon 09:00-12:00; mon 13:00-17:00"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("tea,Tea,,,,four,,", "row 3: the price 'four' is not a number"),
        ("tea,Tea,,,,NaN,,", "row 3: NaN cannot be a price"),
        ("tea,Tea,,,,-1,,", "row 3: -1 cannot be a price"),
        ("tea,Tea,,,,1e999999,,", "row 3: 1E+999999 cannot be a price"),
        ("tea,Tea,,,,4,,many", "row 3: the stock 'many' is not a whole number"),
        ("tea,Tea,,,,4,,99999999999", "row 3: the stock '99999999999' is not a whole number"),
        ("tea,,,,,4,,", "row 3: the name is empty"),
        ("../tea,Tea,,,,4,,", "row 3: '../tea' cannot be an id"),
        ("tea,Tea,,,,4,dollars,", "row 3: 'DOLLARS' is no currency"),
        ("first,Tea,,,,4,,", "row 3: the id 'first' is that of row 2"),
        ("tea,Tea", "row 3 has 2 cells instead of 8"),
        ('tea,"Tea', "row 3 cannot be read: unexpected end of data"),
        (f"tea,{'x' * 300},,,,,,", "row 3: the name has 300 characters; at most 255 fit"),
        (f"tea,Tea,,,{'x' * 140_000},,,", "row 3 cannot be read: field larger than field limit"),
    ],
)
def test_a_wrong_row_is_named(row: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read_products(f"{HEADER}\nfirst,First,,,,,,\n{row}\n")
    assert str(raised.value).startswith(said)


def test_all_wrong_rows_are_named_at_once() -> None:
    with pytest.raises(InputError) as raised:
        read_products("name,price\n" + "Tea,x\n" * 30)
    assert str(raised.value).count("row ") == 20
    assert str(raised.value).endswith("; and 10 more rows")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "row 1 must have the column 'name'"),
        ("id,price\n", "row 1 must have the column 'name'"),
        ("name,name\n", "row 1 must have the column 'name', and no column twice"),
        ("name,prize\nTea,1\n", "row 1: products have no column 'prize'"),
        ("name\n" + "Tea\n" * (MOST_ROWS + 1), "the table has more than 10,000 rows"),
    ],
)
def test_a_table_that_is_no_such_table_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read_products(text)
    assert str(raised.value).startswith(said)


def test_a_wrong_service_is_named() -> None:
    with pytest.raises(InputError, match="row 2: there is no time zone 'Mars'; row 3: 'mon' are no opening hours"):
        read_services("name,windows,timezone\nA,mon 09:00-10:00,Mars\nB,mon,UTC\n")


def test_a_product_is_kept_as_it_is_written_or_not_at_all() -> None:
    assert read_products("name\n Tea \n")[0].name == "Tea"
    with pytest.raises(InputError, match="NUL"):
        read_products("name\nTe\0a\n")
    assert isinstance(read_products("name\nTea\n")[0], Product)
