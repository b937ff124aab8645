from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.web.html import parse_html


def shape(parsed: Parsed) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, parsed.text[block.start : block.end]) for block in parsed.blocks]


PAGE = """\
<!doctype html><html lang="en-GB"><head><title> Ferry &amp; pier </title>
<meta name="author" content="Ann"><meta property="article:published_time" content="2026-01-31">
<meta name="description" content="All about it"><link rel="canonical" href="https://example.org/ferry"></head>
<body><nav><ul><li>Home</li></ul></nav><header><h1>Ferry</h1><p>Log in</p></header>
<div class="sidebar">Related</div><div class="cookie-banner">We use cookies</div>
<script>track()</script><style>p {}</style><p hidden>unseen</p><p style="display: none">unseen</p>
<h2>Times <em>and</em> tides</h2><p>It leaves
   at <b>nine</b>.<br>Daily.</p>
<ul><li>one</li><li><p>two</p><ol><li>nested</li><li>more</li></ol></li></ul>
<table><caption>Fares</caption><tr><th>Route</th><th>Price</th></tr><tr><td>Sula</td><td></td></tr></table>
<pre><code>def f():
    return 1 &lt; 2</code></pre>
<blockquote><p>Said so.</p></blockquote>
loose words
<article><header>Kept here</header><aside>and this</aside></article>
<footer>Imprint</footer></body></html>"""


@pytest.mark.req("R-EXT-05", "R-NRM-03", "R-NRM-05")
def test_what_a_reader_reads_stays_with_its_structure() -> None:
    parsed = parse_html(PAGE.encode(), "page.html")
    assert shape(parsed) == [
        ("heading", 1, "Ferry"),
        ("heading", 2, "Times and tides"),
        ("paragraph", 0, "It leaves at nine.\nDaily."),
        ("list", 0, "- one\n- two\n  1. nested\n  2. more"),
        ("table", 0, "Fares\n| Route | Price |\n| --- | --- |\n| Sula |  |"),
        ("code", 0, "def f():\n    return 1 < 2"),
        ("quote", 0, "Said so."),
        ("paragraph", 0, "loose words"),
        ("paragraph", 0, "Kept here"),
        ("paragraph", 0, "and this"),
    ]
    assert broken_rules(parsed) == []


@pytest.mark.req("R-NRM-02")
def test_title_author_date_and_url_are_metadata() -> None:
    parsed = parse_html(PAGE.encode(), "page.html")
    assert parsed.title == "Ferry & pier"
    assert parsed.media_type == "text/html"
    assert parsed.metadata == {
        "author": "Ann",
        "date": "2026-01-31T00:00:00+00:00",
        "description": "All about it",
        "language": "en-gb",
        "url": "https://example.org/ferry",
    }


@pytest.mark.req("R-NRM-03")
def test_main_is_enough_when_there_is_one() -> None:
    parsed = parse_html(b"<div>Buy now!</div><main><h1>Real</h1>text</main><div>More offers</div>", "page.html")
    assert shape(parsed) == [("heading", 1, "Real"), ("paragraph", 0, "text")]
    assert parsed.title == "Real"


def test_an_empty_main_does_not_hide_the_page() -> None:
    assert parse_html(b"<main></main><p>All of it.</p>", "page.html").text == "All of it."


def test_layout_tables_are_transparent() -> None:
    parsed = parse_html(b"<table><tr><td><h2>Left</h2>words</td><td><p>right</p></td></tr></table>", "page.html")
    assert shape(parsed) == [("heading", 2, "Left"), ("paragraph", 0, "words"), ("paragraph", 0, "right")]


def test_merged_cells_keep_the_others_in_their_columns() -> None:
    parsed = parse_html(
        b"<table><tr><th>Zone<th>Limit<th>Remark</tr><tr><td rowspan=2>Basin<td>3 knots<td>by day</tr>"
        b"<tr><td>2 knots<td>at night</tr><tr><td colspan=2>Quay and dock<td>Only pilots</tr>"
        b"<tr><td>Roads<td>9 knots<td>always</tr></table>",
        "page.html",
    )
    assert parsed.text.splitlines() == [
        "| Zone | Limit | Remark |",
        "| --- | --- | --- |",
        "| Basin | 3 knots | by day |",
        "| Basin | 2 knots | at night |",
        "| Quay and dock |  | Only pilots |",
        "| Roads | 9 knots | always |",
    ]


@pytest.mark.parametrize("said", ["0", "-3", "many", "", "99999999999999999999", "\u0663"])
def test_what_a_cell_says_of_its_width_may_be_nonsense(said: str) -> None:
    page = f'<table><tr><td colspan="{said}">a<td>b</tr><tr><td>c<td>d</tr></table>'
    assert parse_html(page.encode(), "page.html").text.splitlines()[-1].startswith("| c | d |")


def test_a_small_table_cannot_say_that_it_is_a_huge_one() -> None:
    page = "<table>" + ("<tr>" + "<td colspan=9999 rowspan=9999>a</td>" * 100 + "</tr>") * 100 + "</table>"
    assert len(parse_html(page.encode(), "page.html").text) < 10 * len(page)


@pytest.mark.parametrize(("start", "first"), [("4", 4), ("0", 0), ("-2", 1), ("x", 1), ("9" * 40, 1), ("²", 1)])
def test_a_numbered_list_begins_where_it_says(start: str, first: int) -> None:
    text = parse_html(f"<ol start='{start}'><li>one</li><li>two</li></ol>".encode(), "a.html").text
    assert text == f"{first}. one\n{first + 1}. two"


def test_a_heading_in_a_list_splits_the_list() -> None:
    parsed = parse_html(b"<ul><li>before<li><h3>Card</h3>after</ul>", "page.html")
    assert shape(parsed) == [("list", 0, "- before"), ("heading", 3, "Card"), ("list", 0, "- after")]


def test_rows_of_a_header_are_one_where_they_name_columns_together() -> None:
    head = "<tr><th><th colspan=2>Sales</tr><tr><th>Region<th>2024<th>2025</tr>"
    page = f"<table><thead>{head}</thead><tr><td>North<td>3<td>4</tr></table>"
    assert parse_html(page.encode(), "a.html").text == (
        "| Region | Sales 2024 | Sales 2025 |\n| --- | --- | --- |\n| North | 3 | 4 |"
    )


@pytest.mark.parametrize(
    "content",
    [
        b'<meta charset="iso-8859-7"><p>' + "Το πλοίο".encode("iso-8859-7"),
        b'<?xml version="1.0" encoding="iso-8859-7"?><p>' + "Το πλοίο".encode("iso-8859-7"),
        "<p>Το πλοίο".encode(),
        "<p>Το πλοίο".encode("utf-16"),
        '<meta charset="iso-8859-7"><p>Το πλοίο'.encode(),
    ],
)
def test_the_encoding_is_declared_or_found(content: bytes) -> None:
    assert parse_html(content, "page.html").text == "Το πλοίο"


def test_a_page_filled_by_a_script_is_empty() -> None:
    with pytest.raises(EmptyDocument, match=r"page\.html") as caught:
        parse_html(b"<html><body><div id=root></div><script>render()</script></body></html>", "page.html")
    assert "script" in caught.value.hint


def test_deep_nesting_costs_structure_not_words() -> None:
    parsed = parse_html(b"<div>" * 100_000 + b"deep" + b"</div>" * 100_000 + b"<p>after</p>", "page.html")
    assert parsed.text == "deep\n\nafter"


TAGS = st.sampled_from(
    re.findall(
        r"\S+",
        "<p> </p> <div> <h1> </h1> <h2> <ul> </ul> <ol> <li> </li> <table> <tr> <td> </td> </table> <pre> </pre>"
        " <br> <blockquote> </blockquote> <main> <header> <nav> </nav> <b> a b &amp; &#xD800; &#8203; <!-- -->"
        " <script>",
    )
)


@given(st.lists(TAGS, max_size=40))
def test_any_html_gives_sound_blocks_or_a_typed_error(parts: list[str]) -> None:
    try:
        parsed = parse_html(" ".join(parts).encode(), "page.html")
    except ParseError:
        return
    assert broken_rules(parsed) == []


TERMS = """<h2>Options</h2><dl class="variablelist">
<dt><span class="term"><code>-e</code><br></span><span class="term"><code>--echo</code></span>
<a class="id_link">#</a></dt>
<dd><p>Show the command.</p><p>The default is <b>off</b></p><ul><li>never</li><li>always</li></ul></dd>
<dt>max_boats (integer)</dt><dt>max_crew</dt><dd>How many.
<dl><dt>0</dt><dd>no limit</dd><dt>1</dt><dd>one</dd></dl></dd>
<dt>lonely</dt></dl>
<p>After.</p>
<dl class="py class"><dt class="sig sig-object py">class Pier(name)<a class="headerlink">¶</a></dt><dd><p>A place.</p>
<dl class="py method"><dt class="sig sig-object py">close()</dt><dd><p>Close it.</p></dd></dl></dd></dl>"""


def test_a_term_is_one_block_with_its_description() -> None:
    parsed = parse_html(TERMS.encode(), "page.html")
    assert shape(parsed) == [
        ("heading", 2, "Options"),
        ("list", 0, "-e, --echo\n  Show the command.\n\n  The default is off\n  - never\n  - always"),
        ("list", 0, "max_boats (integer), max_crew\n  How many.\n\n  0\n    no limit\n\n  1\n    one"),
        ("list", 0, "lonely"),
        ("paragraph", 0, "After."),
        ("list", 0, "class Pier(name)\n  A place."),
        ("list", 0, "close()\n  Close it."),
    ]
    assert broken_rules(parsed) == []


def test_a_list_without_terms_stays_a_list_and_a_description_without_one_is_text() -> None:
    parsed = parse_html(b"<ul><li>one<li>two</ul><dl><dd>All alone.<dd>Twice.</dl>", "page.html")
    assert shape(parsed) == [("list", 0, "- one\n- two"), ("paragraph", 0, "All alone.\n\n  Twice.")]


def test_links_to_other_pages_of_a_manual_are_not_text() -> None:
    page = b"<div class=navheader><table><tr><td>Prev<td>Up<td>Next</table></div><p>Words.</p>"
    assert parse_html(page, "page.html").text == "Words."


@pytest.mark.parametrize(
    "first", ['<?xml version="1.0"?>', '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "x.dtd">']
)
def test_an_empty_element_of_xhtml_does_not_take_the_rest_of_the_page(first: str) -> None:
    page = f'{first}<html><head><title/><script src="a.js"/></head><body><iframe src="b"/><p>Words.</p></body></html>'
    assert parse_html(page.encode(), "page.html").text == "Words."


@pytest.mark.parametrize(
    "section",
    [
        '<section id="cookies"><h2>Cookies</h2><p>They last a day.</p></section>',
        '<div class="section" id="Cookies"><h2>Cookies</h2><p>They last a day.</p></div>',
        '<div class="section-level-extent" id="Cookies"><h2>Cookies</h2><p>They last a day.</p></div>',
        '<h2 id="cookies">Cookies</h2><p>They last a day.</p>',
    ],
)
def test_the_id_of_a_section_is_its_anchor_and_makes_it_no_frame(section: str) -> None:
    parsed = parse_html(f"<p>Up.</p>{section}<div id=footer><p>Imprint</p></div>".encode(), "page.html")
    assert shape(parsed) == [("paragraph", 0, "Up."), ("heading", 2, "Cookies"), ("paragraph", 0, "They last a day.")]


def test_an_entry_that_is_named_by_its_id_stays() -> None:
    page = b'<dl><dt id="footer">Footer</dt><dd id="menu">Below.</dd><dt class="nav">Home</dt></dl>'
    assert parse_html(page, "page.html").text == "Footer\n  Below."


def test_lines_of_chinese_and_japanese_go_on_without_a_space() -> None:
    page = (
        "<h1>ファ\n  イル</h1><p>設定ファ\r\n  イルを\n Emacs\n で読む。\n次の行<p>한국\n어<p>東<br>京<pre>縦\n横</pre>"
    )
    assert parse_html(page.encode(), "page.html").text == (
        "ファイル\n\n設定ファイルを Emacs で読む。次の行\n\n한국 어\n\n東\n京\n\n縦\n横"
    )
    table = "<table><tr><th>表\nの<th>Words<tr><td>一<br>二<td>on\nlines</table>"
    assert parse_html(table.encode(), "page.html").text == "| 表の | Words |\n| --- | --- |\n| 一 二 | on lines |"
