from __future__ import annotations

from typing import Any

import pytest
from tests.unit.ingest.parsers.odf_files import SPACES, document, flat, meta, pack, packed

from ragstone.core.errors import EmptyDocument, NoTextSeen, ParseError, ParserLimit, UnsupportedFormat
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import ParseOptions, broken_rules
from ragstone.ingest.parsers.office import ods

NUMBERS = (
    '<text:list-style style:name="L1">'
    '<text:list-level-style-number text:level="1" style:num-format="1"/>'
    '<text:list-level-style-bullet text:level="2"/></text:list-style>'
)


def blocks(parsed: Parsed) -> list[tuple[Any, ...]]:
    assert broken_rules(parsed) == []
    return [(block.kind, block.level, parsed.text[block.start : block.end]) for block in parsed.blocks]


def read(inner: str, styles: str = "") -> list[tuple[Any, ...]]:
    return blocks(parse(packed(document(inner, styles=styles)), "a.odt"))


def items(*texts: str) -> str:
    return "".join(f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in texts)


def test_headings_paragraphs_quotes_and_code() -> None:
    styles = (
        '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
        '<style:style style:name="P2" style:family="paragraph" style:parent-style-name="Standard">'
        '<style:text-properties style:font-name="Liberation Mono"/></style:style>'
        '<style:style style:name="P3" style:family="paragraph" style:parent-style-name="P3"/>'
    )
    written = read(
        '<text:p text:style-name="P1">The Title</text:p>'
        '<text:h text:outline-level="1">Part</text:h><text:h text:outline-level="99">Deep</text:h>'
        '<text:p text:style-name="P3">Some<text:s text:c="2"/>text,<text:tab/>a <text:span>wo</text:span>rd,'
        '<text:line-break/><text:a xlink:href="http://x">a link</text:a> &lt;b&gt;.</text:p>'
        '<text:p text:style-name="Quotations">Said so.</text:p>'
        '<text:p text:style-name="P2">if x:</text:p><text:p text:style-name="P2"><text:s text:c="4"/>y()</text:p>'
        '<text:p text:style-name="Preformatted_20_Text">z</text:p>',
        styles,
    )
    assert written == [
        ("heading", 1, "The Title"),
        ("heading", 1, "Part"),
        ("heading", 6, "Deep"),
        ("paragraph", 0, "Some text, a word,\na link <b>."),
        ("quote", 0, "Said so."),
        ("code", 0, "if x:\n    y()\nz"),
    ]


def test_lists_are_numbered_nested_and_go_on() -> None:
    inner = f"<text:list><text:list-item><text:list>{items('wind')}</text:list></text:list-item></text:list>"
    written = read(
        f'<text:list text:style-name="L1">{items("One")}<text:list-item><text:p>Two</text:p>'
        f"<text:list>{items('inner')}</text:list></text:list-item></text:list><text:p>Between.</text:p>"
        f'<text:list text:style-name="L1" text:continue-numbering="true">{items("Three")}</text:list>'
        f'<text:p>Again.</text:p><text:list text:style-name="L1">{items("First")}</text:list>'
        f'<text:p>Later.</text:p><text:list text:style-name="L1"><text:list-item text:start-value="7">'
        f"<text:p>Seven</text:p></text:list-item></text:list><text:p>Deep.</text:p>{inner}",
        NUMBERS,
    )
    assert [text for kind, _, text in written if kind == "list"] == [
        "1. One\n2. Two\n  - inner",
        "3. Three",
        "1. First",
        "7. Seven",
        "- wind",
    ]


def test_the_styles_of_lists_may_be_shared() -> None:
    styles = f"<office:document-styles {SPACES}><office:styles>{NUMBERS}</office:styles></office:document-styles>"
    content = packed(document(f'<text:list text:style-name="L1">{items("One", "Two")}</text:list>'), styles=styles)
    assert parse(content, "a.odt").text == "1. One\n2. Two"


def test_what_was_deleted_and_what_was_remarked_is_not_read() -> None:
    written = read(
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p></text:deletion>"
        "</text:changed-region><text:changed-region><text:insertion/></text:changed-region></text:tracked-changes>"
        "<text:table-of-content><text:index-body><text:p>Part 1</text:p></text:index-body></text:table-of-content>"
        '<text:p>It <text:change text:change-id="1"/><text:change-start text:change-id="2"/>stays'
        '<text:change-end text:change-id="2"/><office:annotation><dc:creator>Ann</dc:creator>'
        "<text:p>Really?</text:p></office:annotation>.</text:p>"
        '<text:section text:display="none"><text:p>hidden</text:p></text:section>'
        "<text:section><text:p>Shown.</text:p></text:section>"
    )
    assert written == [("paragraph", 0, "It stays."), ("paragraph", 0, "Shown.")]


def test_notes_stand_at_the_end_and_boxes_behind_their_paragraph() -> None:
    written = read(
        "<text:p>The ferry<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>The old one."
        "</text:p></text:note-body></text:note> leaves<draw:frame><svg:title>A ship</svg:title><draw:text-box>"
        "<text:p>In a box.</text:p></draw:text-box></draw:frame> at nine.</text:p><text:p>Next.</text:p>"
    )
    assert [text for _, _, text in written] == [
        "The ferry[1] leaves at nine.",
        "In a box.",
        "Next.",
        "[1] The old one.",
    ]


def test_tables_keep_cells_in_their_columns() -> None:
    def row(*cells: str) -> str:
        return f"<table:table-row>{''.join(cells)}</table:table-row>"

    def cell(text: str, spans: str = "") -> str:
        return f"<table:table-cell {spans}><text:p>{text}</text:p></table:table-cell>"

    covered = "<table:covered-table-cell/>"
    written = read(
        '<table:table><table:table-column table:number-columns-repeated="3"/><table:table-header-rows>'
        + row(cell("Product", 'table:number-rows-spanned="2"'), cell("Price", 'table:number-columns-spanned="2"'))
        + row(covered, cell("Retail"), cell("Export"))
        + "</table:table-header-rows>"
        + row(cell("Butter"), cell("2.90"), cell("2.60"))
        + row(cell("Cheese"), '<table:table-cell table:number-columns-repeated="2"/>')
        + "</table:table>"
    )
    assert [text for _, _, text in written] == [
        ("| Product | Price Retail | Price Export |\n| --- | --- | --- |\n| Butter | 2.90 | 2.60 |\n| Cheese |  |  |")
    ]


def test_title_author_date_and_language_come_from_the_properties() -> None:
    about = (
        "<dc:title>Fares</dc:title><meta:initial-creator>Ann</meta:initial-creator><dc:creator>Bob</dc:creator>"
        "<meta:creation-date>2026-01-31T09:00:00</meta:creation-date><dc:language>de-DE</dc:language>"
    )
    expected = {"author": "Ann", "date": "2026-01-31T09:00:00", "language": "de-DE"}
    for content in (packed(document(BODIES["text"]), meta=meta(about)), flat(BODIES["text"], about=about)):
        parsed = parse(content, "a.odt")
        assert (parsed.title, parsed.text) == ("Fares", "Hello")
        assert {key: str(value)[: len(expected[key])] for key, value in parsed.metadata.items()} == expected


BODIES = {
    "text": "<text:p>Hello</text:p>",
    "spreadsheet": '<table:table table:name="S"><table:table-row><table:table-cell><text:p>Hello</text:p>'
    "</table:table-cell></table:table-row></table:table>",
    "presentation": "<draw:page><draw:frame><draw:text-box><text:p>Hello</text:p></draw:text-box></draw:frame>"
    "</draw:page>",
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("name", ["download", "a.odt", "a.ods", "a.docx", "a.zip"])
def test_a_file_is_known_by_its_media_type(kind: str, name: str) -> None:
    parsed = parse(packed(document(BODIES[kind], kind), kind), name)
    assert parsed.text.endswith("Hello")
    assert parsed.media_type == f"application/vnd.oasis.opendocument.{kind}"


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("name", ["download", "a.xml", "a.fodt", "a.txt"])
def test_a_flat_file_is_known_by_its_media_type(kind: str, name: str) -> None:
    parsed = parse(flat(BODIES[kind], kind), name)
    assert parsed.text.endswith("Hello")
    assert parsed.media_type == f"application/vnd.oasis.opendocument.{kind}"


def test_a_template_and_a_file_without_a_media_type_are_read() -> None:
    content = document(BODIES["text"])
    assert parse(packed(content, "text-template"), "a.ott").text == "Hello"
    assert parse(pack({"content.xml": content}), "a.odt").text == "Hello"


@pytest.mark.parametrize(
    ("content", "name", "error", "message"),
    [
        (packed("<x/>", "graphics"), "a.odg", UnsupportedFormat, "is application/vnd.oasis.opendocument.graphics"),
        (pack({"content.xml": "<x/>"}), "a.zip", UnsupportedFormat, "a.zip is a ZIP archive, not a document"),
        (packed("<x/>"), "a.odt", ParseError, "a.odt is a damaged ODT: it has no body"),
        (packed("<x"), "a.odt", ParseError, "a.odt is a damaged ODT: 'content.xml' is not XML"),
        (packed("<x", "spreadsheet"), "a.ods", ParseError, "a.ods is a damaged ODS: 'content.xml' is not XML"),
        (pack({"mimetype": "application/vnd.oasis.opendocument.text"}), "a.odt", ParseError, "a damaged ODT"),
        (packed(document("")), "a.odt", EmptyDocument, "no text was found in a.odt"),
        (packed(document("", "presentation"), "presentation"), "a.odp", NoTextSeen, "no text was found in a.odp"),
        (b"words", "a.odt", ParseError, "a.odt is not an ODT: it contains text"),
        (b"PK\x03\x04cut", "a.ods", ParseError, "a.ods is a damaged ODS"),
    ],
)
def test_what_cannot_be_read_says_why(content: bytes, name: str, error: type[ParseError], message: str) -> None:
    with pytest.raises(error) as caught:
        parse(content, name)
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "part",
    [
        {"META-INF/manifest.xml": "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"},
        {"encrypted-package": b"\x00\x01"},
    ],
)
@pytest.mark.parametrize("kind", BODIES)
def test_an_encrypted_file_is_refused(kind: str, part: dict[str, str | bytes]) -> None:
    content = pack({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": b"\x8a\x01", **part})
    with pytest.raises(ParseError, match="a is encrypted") as caught:
        parse(content, "a")
    assert caught.value.hint == "save it without a password"


def test_slides_have_titles_bullets_charts_and_notes() -> None:
    slide = (
        "<draw:page><draw:frame presentation:class='outline'><draw:text-box><text:list>"
        f"{items('One', 'Two')}</text:list></draw:text-box></draw:frame>"
        "<draw:frame presentation:class='title'><draw:text-box><text:p>The</text:p><text:p>Ferry</text:p>"
        "</draw:text-box></draw:frame><draw:custom-shape><text:p>At</text:p><text:p>nine</text:p><text:p/>"
        "<text:p>daily</text:p></draw:custom-shape>"
        "<draw:g><draw:rect presentation:class='title'><text:p>Quay 4</text:p></draw:rect></draw:g>"
        "<draw:frame><draw:object xlink:href='./Object 1'/></draw:frame>"
        "<draw:frame presentation:class='page-number'><draw:text-box><text:p>1</text:p></draw:text-box></draw:frame>"
        "<presentation:notes><draw:page-thumbnail/><draw:frame presentation:class='notes'><draw:text-box>"
        "<text:p>Be slow.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
    )
    hidden = BODIES["presentation"].replace("<draw:page>", '<draw:page draw:style-name="dp2">')
    styles = (
        '<style:style style:name="dp2" style:family="drawing-page">'
        '<style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )
    chart = document(
        "<table:table><table:table-rows><table:table-row><table:table-cell><text:p>May</text:p></table:table-cell>"
        "<table:table-cell><text:p>7</text:p></table:table-cell></table:table-row></table:table-rows></table:table>",
        "chart",
    )
    content = document(slide + hidden + slide, "presentation", styles)
    kind = "application/vnd.oasis.opendocument.presentation"
    parsed = parse(pack({"mimetype": kind, "content.xml": content, "Object 1/content.xml": chart}), "a.odp")
    first = [
        ("heading", 1, "The Ferry"),
        ("list", 0, "- One\n- Two"),
        ("paragraph", 0, "At\nnine"),
        ("paragraph", 0, "daily"),
        ("paragraph", 0, "Quay 4"),
        ("table", 0, "| May | 7 |\n| --- | --- |"),
        ("paragraph", 0, "Notes: Be slow."),
    ]
    assert blocks(parsed) == [*first, *first[:5], first[6]]
    assert [block.page for block in parsed.blocks] == [1] * 7 + [3] * 6
    assert parsed.warnings == ("hidden slide 2 was left out",)
    assert parsed.metadata["pages"] == 3
    with pytest.raises(ParserLimit, match="3 slides; the limit is 2"):
        parse(packed(content, "presentation"), "a.odp", ParseOptions(pages=2))


def sheet(rows: str, styles: str = "", style: str = "") -> bytes:
    table = f'<table:table table:name="S" table:style-name="{style}">{rows}</table:table>'
    return packed(document(table, "spreadsheet", styles), "spreadsheet")


def row(*cells: str, times: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{times}">{"".join(cells)}</table:table-row>'


def cell(text: str = "", attributes: str = "", *, times: int = 1) -> str:
    words = f"<text:p>{text}</text:p>" if text else ""
    return f'<table:table-cell table:number-columns-repeated="{times}" {attributes}>{words}</table:table-cell>'


def test_sheets_titles_tables_and_values() -> None:
    dated = cell("31.01.26", 'office:value-type="date" office:date-value="2026-01-31"')
    moment = cell("9 Uhr", 'office:value-type="date" office:date-value="2026-01-31T09:05:00"')
    odd = cell("some day", 'office:value-type="date" office:date-value="soon"')
    price = cell("12,50 €", 'office:value-type="currency" office:value="12.5"')
    bare = cell("", 'office:value-type="float" office:value="0.30000000000000004"')
    truth = cell("WAHR", 'office:value-type="boolean" office:boolean-value="true"')
    unsaved = cell("", 'table:formula="of:=SUM([.A1:.A2])"')
    remark = "<office:annotation><text:p>remark</text:p></office:annotation>"
    content = sheet(
        row(cell(), cell("Prices of 2026"), cell(times=16382))
        + row(cell(), cell("Route"), cell("Price"), cell("Since"), cell("Open"))
        + row(cell(), cell("Sula"), price, dated, truth)
        + row(cell(), cell("Nord").replace("<text:p>", f"{remark}<text:p>"), bare, moment, unsaved)
        + row(cell(), cell("West"), price, odd).replace(
            "<table:table-row", '<table:table-row table:visibility="collapse"'
        )
        + row(cell(times=16384), times=1_048_000)
    )
    parsed = parse(content, "a.ods")
    table = (
        "| Route | Price | Since | Open |\n| --- | --- | --- | --- |\n| Sula | 12,50 € | 2026-01-31 | TRUE |\n"
        "| Nord | 0.3 | 2026-01-31 09:05 |  |\n| West | 12,50 € | some day |  |"
    )
    assert blocks(parsed) == [("heading", 1, "S"), ("paragraph", 0, "Prices of 2026"), ("table", 0, table)]
    assert parsed.warnings == ("1 formulas have no saved value and are empty; save it from a spreadsheet program",)
    assert parsed.title == ""


def test_hidden_sheets_are_left_out() -> None:
    look = '<style:table-properties table:display="false"/>'
    styles = f'<style:style style:name="ta1" style:family="table">{look}</style:style>'
    with pytest.raises(EmptyDocument):
        parse(sheet(row(cell("unseen")), styles, style="ta1"), "a.ods")
    secret = f'<table:table table:name="Secret" table:style-name="ta1">{row(cell("no"))}</table:table>'
    parsed = parse(packed(document(secret + BODIES["spreadsheet"], "spreadsheet", styles), "spreadsheet"), "a.ods")
    assert parsed.text == "S\n\nHello"
    assert parsed.warnings == ("hidden sheet 'Secret' was left out",)


def test_merged_cells_show_their_text_in_every_row() -> None:
    content = sheet(
        row(cell("Port"), cell("Ship"), cell("Seats"))
        + row(cell("Sula", 'table:number-rows-spanned="2"'), cell("Ann"), cell("10"))
        + row("<table:covered-table-cell/>", cell("Bob"), cell("20"))
        + row(cell("Nord"), cell("Cid", 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>")
    )
    assert parse(content, "a.ods").text == (
        "S\n\n| Port | Ship | Seats |\n| --- | --- | --- |\n| Sula | Ann | 10 |\n| Sula | Bob | 20 |\n| Nord | Cid |  |"
    )


def test_repeated_rows_and_cells_are_read_as_often_as_they_stand_there() -> None:
    content = sheet(row(cell("a"), cell("1", times=2), times=2) + row(times=3) + row(cell("b")))
    assert parse(content, "a.ods").text == "S\n\n| a | 1 | 1 |\n| --- | --- | --- |\n| a | 1 | 1 |\n\nb"


@pytest.mark.parametrize(
    "rows",
    [
        row(cell("1", times=999_999_999)),
        row(cell("1"), times=999_999_999),
        row(cell("1", times=16_384), times=1_048_576),
        row(cell(times=900_000_000), cell("1")),
        row(times=900_000_000) + row(cell("1")),
        row("<table:covered-table-cell table:number-columns-repeated='900000000'/>", cell("1")),
    ],
)
def test_cells_without_end_are_refused_in_time(rows: str) -> None:
    with pytest.raises(ParserLimit, match=r"a\.ods has more than 2,000,000 cells"):
        parse(sheet(rows), "a.ods")


def test_all_sheets_share_one_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = "".join(f'<table:table table:name="{name}">{row(cell("1", times=3))}</table:table>' for name in "ab")
    content = packed(document(tables, "spreadsheet"), "spreadsheet")
    monkeypatch.setattr(ods, "MAX_CELLS", 6)
    assert len(parse(content, "a.ods").blocks) == 4
    monkeypatch.setattr(ods, "MAX_CELLS", 5)
    with pytest.raises(ParserLimit):
        parse(content, "a.ods")


def test_counts_that_are_none_are_one() -> None:
    content = sheet(
        row(cell("1")).replace('rows-repeated="1"', 'rows-repeated="-5"').replace('s-repeated="1"', 's-repeated="²"')
    )
    assert parse(content, "a.ods").text == "S\n\n1"
